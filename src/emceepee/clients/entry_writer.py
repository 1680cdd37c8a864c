"""Write emceepee's own entry in a client's format."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from emceepee.clients.client_program import ClientProgram, Words
from emceepee.clients.launch_command import starts_emceepee
from emceepee.paths import OWN_NAME
from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Launch:
    """How a client connects to emceepee: by a command or by a URL."""

    command: tuple[str, ...] = ()
    url: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)


def entry_for(client: ClientProgram, words: Words, name: str, launch: Launch) -> JsonObject:
    """Return the entry in the client's key names, with the client's load flags."""
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


def is_own(name: str, entry: JsonObject, urls: Sequence[str] = ()) -> bool:
    """Return whether an entry is emceepee, which must not be its own server.

    `urls` are addresses from earlier installs.
    """
    if name == OWN_NAME or entry.get("url") in urls:
        return True
    command = entry.get("command")
    if not isinstance(command, str):
        return False
    args = entry.get("args")
    return starts_emceepee(command, args if isinstance(args, list) else [])
