"""The servers that were added, as a person changes them: their settings to begin with, and whether they are used."""

import re
from collections.abc import Iterable

from emceepee.backends.spec import BackendSpec, entry_of
from emceepee.errors import InvalidArguments
from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.telemetry.redaction import MASK, masked_url, redacted

_SETTING = re.compile(r"(?P<name>[\w.-]+)=(?P<value>.*)", re.DOTALL).fullmatch


def _name_of(given: JsonObject) -> str:
    """Raises: InvalidArguments."""
    name = given.get("server")
    if not isinstance(name, str):
        raise InvalidArguments("server: a string is needed.")
    return name


async def show_settings(session: Session, given: JsonObject) -> JsonObject:
    """Raises: UnknownBackend, NotAllowed: the operator's are not shown."""
    return {"entry": masked_entry(session.servers.added(_name_of(given)))}


async def disable(session: Session, given: JsonObject) -> JsonObject:
    """Raises: UnknownBackend, NotAllowed."""
    await session.servers.disable(name := _name_of(given))
    return {"disabled": name}


async def enable(session: Session, given: JsonObject) -> JsonObject:
    """Raises: UnknownBackend, NotAllowed."""
    await session.servers.enable(name := _name_of(given))
    return {"enabled": name}


def masked_entry(spec: BackendSpec) -> JsonObject:
    """What would add it again, but for what may be a secret: every header, every variable, and what looks like one.

    Each has a mask in its place, by which the page knows that it must be written again.
    """
    entry = entry_of(spec).model_dump(mode="json", exclude_none=True)
    shown: JsonObject = redacted(entry, address=masked_url)
    for key in ("headers", "env"):
        if key in entry:
            shown[key] = dict.fromkeys(entry[key], MASK)
    if "args" in entry:
        shown["args"] = list(_masked_args(entry["args"]))
    return shown


def _masked_args(args: Iterable[str]) -> Iterable[str]:
    """`--token x` and `--token=x` are told by their names."""
    before = ""
    for arg in args:
        if setting := _SETTING(arg):
            yield f"{setting['name']}={_masked(setting['value'], setting['name'])}"
        else:
            yield _masked(arg, before)
        before = arg if arg.startswith("-") and not setting else ""


def _masked(value: str, flag: str) -> str:
    return str(redacted(value, name=flag.strip("-"), address=masked_url))
