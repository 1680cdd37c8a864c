"""The servers that were added, as a person changes them: their settings to begin with, and whether they are used."""

from emceepee.backends.spec import BackendSpec, entry_of
from emceepee.errors import InvalidArguments
from emceepee.sessions.session import Session
from emceepee.telemetry.argument_masking import masked_arguments
from emceepee.telemetry.redaction import MASK, masked_url, redacted
from emceepee.wire.json_types import JsonObject


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
        shown["args"] = masked_arguments(entry["args"])
    return shown
