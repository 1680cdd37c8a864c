"""`emceepee install`: write the entry for emceepee itself into a client's configuration."""

import argparse
import os
import sys

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
from emceepee.clients.catalogue import client_called
from emceepee.clients.changes import FileChange
from emceepee.clients.documents import ClientFile
from emceepee.clients.faults import ClientError
from emceepee.clients.finding import file_to_write
from emceepee.clients.own_config import OwnConfig
from emceepee.clients.writing import Launch, entry_for, own_command


def run_install(options: argparse.Namespace) -> int:
    """Returns the exit code."""
    return run_guarded(lambda: _run(options))


def _run(options: argparse.Namespace) -> int:
    client = client_called(options.client)
    if options.target is not None:
        file = ClientFile.at(client, options.target.expanduser().absolute())
    else:
        file = file_to_write(client, os.environ, sys.platform)
    launch = _launch(options)
    _, words = file.place()
    entry = entry_for(client, words, options.name, launch)
    before = dict(file.entries()).get(options.name)
    after = file.content if before == entry else file.with_entry(options.name, entry)
    change = FileChange(path=file.path, before=file.content, after=after)
    facts: Facts = {"client": client.key, "file": str(file.path), "name": options.name, "entry": entry}
    facts["outcome"] = "unchanged" if not change.is_change else "added" if before is None else "replaced"
    if not options.json:
        say(f"{Paint.of(sys.stdout).bold(client.title)} {file.path}")
        if change.is_change:
            show_diffs([change])
        else:
            say("It is there already.")
    code = decide(options, [change], f"Write this to {file.path}?")
    is_written = code is None
    if code is None:
        urls = [] if launch.url is None else [launch.url]
        open_journal().carry_out(f"install {client.key}", [change], now=current_time(), own_urls=urls)
        code = DONE
    if options.json:
        say_json(facts | {"written": is_written})
    elif is_written:
        say(f"Done. {client.afterwards}. `emceepee undo` takes it back.")
        _mention_import(file, options.name)
    return code


def _launch(options: argparse.Namespace) -> Launch:
    if options.http is not None:
        if not options.http.startswith(("http://", "https://")):
            raise ClientError("--http: expected an address that begins with http:// or https://")
        return Launch(url=options.http)
    own = OwnConfig.find(options.config, os.environ)
    if own.content is None:
        complain(f"there is no {own.path} yet, so emceepee begins without servers; emceepee import makes it")
        return Launch(command=own_command(sys.argv[0]))
    return Launch(command=(*own_command(sys.argv[0]), "--config", str(own.path)))


def _mention_import(file: ClientFile, name: str) -> None:
    others = [other for other, _ in file.entries() if other != name]
    if others:
        say(f"The client still has {len(others)} other servers; emceepee import {file.client.key} --take moves them.")
