"""The entry of emceepee itself, in a client's words."""

import os
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from emceepee.clients.client import Client, Words
from emceepee.json_types import JsonObject
from emceepee.own_files import OWN_NAME

_PASSING = re.compile(r"[/\\](?:archive-v\d+|builds-v\d+|\.cache[/\\]uv|pipx[/\\]\.cache)[/\\]")  # of uvx and pipx run
_RUNNER = re.compile(r"uvx?|pipx|python[\d.]*")
_PACKAGE = re.compile(r"emceepee(?:(?:\[|==|@).*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a client reaches emceepee: by a command, or at an address."""

    command: tuple[str, ...] = ()
    url: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)


def entry_for(client: Client, words: Words, name: str, launch: Launch) -> JsonObject:
    """With the client's load flags."""
    entry: JsonObject = {"name": name} if words.repeats_name else {}
    entry |= words.fixed
    kind = words.stdio_type if launch.url is None else words.http_type
    if kind is not None:
        entry["type"] = kind
    if launch.url is not None:
        entry[words.url] = launch.url
    elif words.joins_args:
        entry[words.command] = list(launch.command)
    else:
        entry[words.command] = launch.command[0]
        entry["args"] = list(launch.command[1:])
    if launch.env:
        entry[words.env] = dict(launch.env)
    return entry | dict(client.load_flags)


def own_command(program: str, executable: str = sys.executable) -> tuple[str, ...]:
    """What starts emceepee from anywhere. `program` is how it was started now.

    A client has no virtual environment and often another PATH, so it is an absolute path, unless uvx or pipx made that
    for this run alone.
    """
    path = Path(os.path.abspath(program))
    if _PASSING.search(str(path)) or _PASSING.search(executable):
        return ("uvx", OWN_NAME)
    if path.name == OWN_NAME and os.access(path, os.X_OK):
        return (str(path),)
    beside = Path(executable).with_name(OWN_NAME)
    return (str(beside),) if os.access(beside, os.X_OK) else (executable, "-m", OWN_NAME)


def is_own(name: str, entry: JsonObject, urls: Sequence[str] = ()) -> bool:
    """Whether it is emceepee itself, which must not be its own server. `urls` are where it was installed before."""
    if name == OWN_NAME or entry.get("url") in urls:
        return True
    command = entry.get("command")
    if not isinstance(command, str):
        return False
    if Path(command).name in (OWN_NAME, "emceepee-http"):
        return True
    if not _RUNNER.fullmatch(Path(command).name):
        return False
    args = [arg for arg in entry.get("args") or () if isinstance(arg, str)]
    words = [arg for arg in args if not arg.startswith("-") and arg not in ("run", "tool")]
    program = words[1:2] if "--from" in args else words[:1]
    return any(_PACKAGE.fullmatch(word) for word in program)
