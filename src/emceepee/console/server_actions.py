"""A person's actions on servers: view and mask the settings, disable, enable, reconnect, and record."""

from emceepee.backends.spec import BackendSpec, entry_of
from emceepee.console.feed import server_row
from emceepee.errors import InvalidArguments
from emceepee.sessions.session import Session
from emceepee.telemetry.argument_mask import masked_arguments
from emceepee.telemetry.redaction import MASK, masked_url, redacted
from emceepee.wire.json_types import JsonObject


async def show_settings(session: Session, given: JsonObject) -> JsonObject:
    """Raises: UnknownBackend, or NotAllowed for servers of the operator, whose settings are not shown."""
    return {"entry": masked_entry(session.servers.added(_name_of(given)))}


async def disable(session: Session, given: JsonObject) -> JsonObject:
    """Raises: UnknownBackend, NotAllowed."""
    await session.servers.disable(name := _name_of(given))
    return {"disabled": name}


async def enable(session: Session, given: JsonObject) -> JsonObject:
    """Raises: UnknownBackend, NotAllowed."""
    await session.servers.enable(name := _name_of(given))
    return {"enabled": name}


async def begin_recording(session: Session, given: JsonObject) -> JsonObject:
    """Record a new connection, so that the recording includes the handshake."""
    connection = session.connection(_name_of(given))
    await connection.recording.begin()
    return {"server": server_row(connection)}


async def end_recording(session: Session, given: JsonObject) -> JsonObject:
    name = _name_of(given)
    return {"name": name, "recording": session.connection(name).recording.end()}


async def reconnect(session: Session, given: JsonObject) -> JsonObject:
    connection = session.connection(_name_of(given))
    await connection.reconnect()
    return {"server": server_row(connection)}


def _name_of(given: JsonObject) -> str:
    """Raises: InvalidArguments."""
    name = given.get("server")
    if not isinstance(name, str):
        raise InvalidArguments("server: a string is needed.")
    return name


def masked_entry(spec: BackendSpec) -> JsonObject:
    """Return the settings that would add the server again, with possible secrets masked.

    Every header, every environment variable, and every value that looks like a secret becomes a mask. The page asks the
    user to enter masked values again.
    """
    entry = entry_of(spec).model_dump(mode="json", exclude_none=True)
    shown: JsonObject = redacted(entry, address=masked_url)
    for key in ("headers", "env"):
        if key in entry:
            shown[key] = dict.fromkeys(entry[key], MASK)
    if "args" in entry:
        shown["args"] = masked_arguments(entry["args"])
    return shown
