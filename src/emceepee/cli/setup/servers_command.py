"""`emceepee servers`: show and change the servers in emceepee's own configuration. Comments in the file survive."""

import argparse
import json
import os
import shutil
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from emceepee.cli.client_changes import Facts, current_time, decide, open_journal, run_guarded, say_json, show_diffs
from emceepee.cli.terminal import DONE, FAILED, Paint, say
from emceepee.clients.own_config import OwnConfig
from emceepee.config.document_errors import ClientError
from emceepee.paths import OWN_NAME
from emceepee.telemetry.argument_mask import masked_arguments
from emceepee.telemetry.redaction import public_place
from emceepee.wire.json_types import JsonObject

_DONE_WORDS = {"add": "added", "remove": "removed", "enable": "enabled", "disable": "disabled"}


def run_servers(options: argparse.Namespace) -> int:
    """Run the command and return the exit code."""
    return run_guarded(lambda: _list(options) if options.work == "list" else _change(options))


# Showing.


def _list(options: argparse.Namespace) -> int:
    own = OwnConfig.find(options.config, os.environ)
    entries = own.servers() if options.tag is None else _with_tag(own.servers(), options.tag)
    tried = _try_all(own, entries, options) if options.status else {}
    rows = [_row(name, entry) | tried.get(name, {}) for name, entry in entries.items()]
    if options.json:
        say_json({"config": str(own.path), "servers": rows})
    elif rows:
        _show(rows, own.path)
    else:
        say(
            f"There are no servers in {own.path}. Add one with `emceepee servers add`, or import yours with "
            f"`emceepee import`."
        )
    return FAILED if any(row.get("status") == "problem" for row in rows) else DONE


def _with_tag(entries: dict[str, JsonObject], tag: str) -> dict[str, JsonObject]:
    """Raises: ClientError."""
    tags = {name: entry["tags"] for name, entry in entries.items() if isinstance(entry.get("tags"), list)}
    found = {name: entry for name, entry in entries.items() if tag in tags.get(name, ())}
    if not found:
        known = sorted({str(word) for words in tags.values() for word in words})
        raise ClientError(f'no server has the tag "{tag}"; there are {", ".join(known) or "none"}')
    return found


def _row(name: str, entry: JsonObject) -> Facts:
    url = next((entry[key] for key in ("url", "serverUrl") if isinstance(entry.get(key), str)), None)
    kind = entry.get("type") if isinstance(entry.get("type"), str) else None
    row: Facts = {
        "name": name,
        "type": kind or ("http" if url else "stdio"),
        "where": public_place(url) if url else _command_line(entry),
        "enabled": entry.get("disabled") is not True,
    }
    tags = entry.get("tags")
    return row | ({"tags": [str(tag) for tag in tags]} if isinstance(tags, list) and tags else {})


def _command_line(entry: JsonObject) -> str:
    """Return the command line with secrets masked, because some programs take them as arguments."""
    args = entry.get("args")
    words = [str(entry.get("command") or ""), *(map(str, args) if isinstance(args, list) else ())]
    return " ".join(masked_arguments(words))


def _show(rows: Sequence[Facts], path: Path) -> None:
    paint = Paint.of(sys.stdout)
    say(paint.bold("Servers of"), f" {path}")
    wide = {key: max(len(str(row[key])) for row in rows) for key in ("name", "type")}
    for row in rows:
        sign = paint.good("●") if row["enabled"] else paint.faint("○")
        tags = f"  [{', '.join(row['tags'])}]" if row.get("tags") else ""
        state = "" if row["enabled"] else "  disabled"
        where = _cut(f"{row['where']}{tags}{state}", sum(wide.values()) + 8)
        say("  ", sign, f" {row['name']:<{wide['name']}}  {row['type']:<{wide['type']}}  {where}")
        if "status" in row:
            _show_status(row, paint)


def _show_status(row: Facts, paint: Paint) -> None:
    if row["status"] in ("ok", "warning"):
        words = f": {row['tools'] or 0} tools, {row['protocolVersion']}, {row['seconds']:.1f} s"
        say("      ", paint.good("works"), words)
    for finding in row["findings"]:
        say("      ", paint.bad(finding["message"]))
        say("      ", paint.bold("→"), f" {finding['remedy']}")


def _cut(text: str, taken: int) -> str:
    if not sys.stdout.isatty():
        return text
    room = max(shutil.get_terminal_size().columns - taken, 20)
    return text if len(text) <= room else f"{text[: room - 1]}…"


def _try_all(own: OwnConfig, entries: dict[str, JsonObject], options: argparse.Namespace) -> dict[str, Facts]:
    from emceepee.cli.setup.doctor_command import check_entries, row_facts

    return {row.name: row_facts(row) for row in check_entries(own, entries, options).rows}


# Changing.


def _change(options: argparse.Namespace) -> int:
    own = OwnConfig.find(options.config, os.environ)
    names = [options.name] if options.work == "add" else list(dict.fromkeys(options.servers))
    after = _added(own, options) if options.work == "add" else _changed(own, names, options.work)
    change = own.changed(after)
    if not options.json and change.is_change:
        show_diffs([change])
    code, is_written = decide(options, [change], f"Write this to {own.path}?"), False
    if code is None:
        open_journal().carry_out(f"servers {options.work}", [change], now=current_time())
        is_written, code = True, DONE
    if options.json:
        say_json({"config": str(own.path), "written": is_written, "servers": names})
    elif is_written:
        say(f"{', '.join(names)}: {_DONE_WORDS[options.work]}. `emceepee undo` reverts it.")
    elif not change.is_change:
        say("There is nothing to write.")
    return code


def _added(own: OwnConfig, options: argparse.Namespace) -> bytes:
    if options.name == OWN_NAME:
        raise ClientError(f'the name "{OWN_NAME}" is reserved for emceepee; choose another')
    if options.name in own.servers():
        raise ClientError(
            f'a server named "{options.name}" already exists; choose another name, or remove it first with: '
            f"emceepee servers remove {options.name}"
        )
    entry = _entry(options)
    _check(options.name, entry, own)
    return own.with_servers([(options.name, entry)])


def _entry(options: argparse.Namespace) -> JsonObject:
    entry: JsonObject = {}
    if "://" in options.target:
        if options.args or options.env or options.cwd:
            raise ClientError("a URL accepts no arguments, --env, or --cwd; these are for a program")
        entry["url"] = options.target
        if options.type:
            entry["type"] = options.type
        if options.header:
            entry["headers"] = dict(_pair(text, ":", "--header") for text in options.header)
    else:
        if options.header or options.type:
            raise ClientError("--header and --type are for a URL, and this is a program")
        entry["command"] = options.target
        if options.args:
            entry["args"] = options.args
        if options.env:
            entry["env"] = dict(_pair(text, "=", "--env") for text in options.env)
        if options.cwd:
            entry["cwd"] = os.path.abspath(os.path.expanduser(options.cwd))
    return entry | ({"disabled": True} if options.disabled else {})


def _pair(text: str, sign: str, flag: str) -> tuple[str, str]:
    name, found, value = text.partition(sign)
    if not found or not name.strip():
        raise ClientError(f"{flag}: expected NAME{sign}VALUE, found {name.strip()!r}")
    return name.strip(), value.strip() if sign == ":" else value


def _check(name: str, entry: JsonObject, own: OwnConfig) -> None:
    """Validate the entry now, because emceepee would reject it later.

    References in env and headers may be unset yet.
    """
    from emceepee.config.file_reader import parse
    from emceepee.config.secret_references import References

    plain = {key: value for key, value in entry.items() if key not in ("env", "headers", "disabled")}
    text = json.dumps({"mcpServers": {name: plain}})
    config = parse(text, source="", references=References(environment=os.environ, folder=own.path.parent))
    if config.problems:
        raise ClientError(
            "; ".join(str(problem).removeprefix(f"mcpServers.{name}").lstrip(".: ") for problem in config.problems)
        )


def _changed(own: OwnConfig, names: Sequence[str], work: str) -> bytes | None:
    known = own.servers()
    for name in names:
        if name not in known:
            there = ", ".join(known) or "none"
            raise ClientError(f'no server is called "{name}" in {own.path}; there are {there}')
    for name in names:
        is_disabled = known[name].get("disabled") is True
        if work == "remove":
            own = replace(own, content=own.without(name))
        elif is_disabled != (work == "disable"):
            own = replace(own, content=own.with_setting(name, "disabled", True if work == "disable" else None))
    return own.content
