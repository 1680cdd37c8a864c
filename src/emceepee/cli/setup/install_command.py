"""`emceepee install`: write emceepee's own entry into a client's configuration."""

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from emceepee.bounds.files import read_file
from emceepee.cli.client_changes import (
    Facts,
    current_time,
    decide,
    open_journal,
    run_guarded,
    say_json,
    show_diffs,
)
from emceepee.cli.terminal import DONE, Paint, complain, say
from emceepee.clients.changes import FileChange
from emceepee.clients.client_file import ClientFile
from emceepee.clients.entry_writer import Launch, entry_for
from emceepee.clients.file_locations import files_to_write
from emceepee.clients.known_clients import client_called
from emceepee.clients.launch_command import ProcessStart, own_command
from emceepee.clients.own_config import OwnConfig
from emceepee.config.document_errors import ClientError
from emceepee.paths import OWN_NAME, current_folder
from emceepee.wire.json_types import JsonObject

LONGEST_COMMAND_LINE = 2 << 20  # bytes; the limit of the operating system
PS, PS_SECONDS = "/bin/ps", 5.0  # used if there is no /proc


def run_install(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return run_guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    client = client_called(options.client)
    if options.target is not None:
        files, left_out = [ClientFile.at(client, options.target.expanduser().absolute())], list[Path]()
    else:
        files, left_out = files_to_write(client, os.environ, sys.platform)
    launch = _launch(options)
    installed = [_installed(file, options.name, launch) for file in files]
    changes = [each.change for each in installed]
    if not options.json:
        for each in installed:
            _show(each)
        for path in left_out:
            say(f"Not written: {path}: its program is not installed. To write it anyway, use --to {path}")
    places = " and ".join(str(change.path) for change in changes if change.is_change)
    code = decide(options, changes, f"Write this to {places}?")
    is_written = code is None
    if code is None:
        urls = [] if launch.url is None else [launch.url]
        open_journal().carry_out(f"install {client.key}", changes, now=current_time(), own_urls=urls)
        code = DONE
    if options.json:
        rows = [{"file": str(each.file.path), "outcome": each.outcome} for each in installed]
        facts: Facts = {"client": client.key, **rows[0], "name": options.name, "entry": installed[0].entry}
        say_json(facts | {"written": is_written, "files": rows})
    elif is_written:
        say(f"Done. {client.afterwards}. `emceepee undo` reverts it.")
        _mention_import(files, options.name)
    return code


@dataclass(frozen=True, slots=True, kw_only=True)
class _Installed:
    """The planned change of one file."""

    file: ClientFile
    entry: JsonObject
    change: FileChange
    outcome: str


def _installed(file: ClientFile, name: str, launch: Launch) -> _Installed:
    _, words = file.place()
    entry = entry_for(file.client, words, name, launch)
    before = dict(file.entries()).get(name)
    after = file.content if before == entry else file.with_entry(name, entry)
    change = file.changed(after)
    outcome = "unchanged" if not change.is_change else "added" if before is None else "replaced"
    return _Installed(file=file, entry=entry, change=change, outcome=outcome)


def _show(installed: _Installed) -> None:
    say(Paint.of(sys.stdout).bold(installed.file.client.title), f" {installed.file.path}")
    if installed.change.is_change:
        show_diffs([installed.change])
    else:
        say("It is there already.")


def _launch(options: argparse.Namespace) -> Launch:
    if options.http is not None:
        if not options.http.startswith(("http://", "https://")):
            raise ClientError("--http: expected an address that begins with http:// or https://")
        return Launch(url=options.http)
    own = OwnConfig.find(options.config, os.environ)
    if own.content is None:
        complain(f"there is no {own.path} yet, so emceepee starts without servers; create it with emceepee import")
        return Launch(command=own_command(_read_start()))
    return Launch(command=(*own_command(_read_start()), "--config", str(own.path)))


def _mention_import(files: Sequence[ClientFile], name: str) -> None:
    others, key = {other for file in files for other, _ in file.entries() if other != name}, files[0].client.key
    if others:
        say(f"The client still has {len(others)} other servers; emceepee import {key} --take moves them.")


def _read_start() -> ProcessStart:
    """Find out from the operating system how this process was started."""
    return ProcessStart(
        program=sys.argv[0],
        arguments=tuple(sys.argv[1:]),
        parent=_command_line(os.getppid()),
        origin=_origin(),
        folder=current_folder(),
    )


def _command_line(process: int) -> tuple[str, ...]:
    """Return the process's command line, or an empty tuple if it is unavailable."""
    try:
        return tuple(os.fsdecode(read_file(f"/proc/{process}/cmdline", LONGEST_COMMAND_LINE)).split("\0"))
    except OSError:
        pass
    words = (PS, "-ww", "-o", "args=", "-p", str(process))
    try:
        shown = subprocess.run(words, capture_output=True, text=True, timeout=PS_SECONDS, check=True).stdout
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()
    return tuple(shown.split())


def _origin() -> str | None:
    try:
        return distribution(OWN_NAME).read_text("direct_url.json")
    except (PackageNotFoundError, OSError, ValueError):
        return None
