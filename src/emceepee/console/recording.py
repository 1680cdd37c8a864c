"""The page's actions to record a server: begin a recording, and end it with a file."""

from emceepee.console.feed import server_row
from emceepee.errors import InvalidArguments
from emceepee.sessions.session import Session
from emceepee.wire.json_types import JsonObject


async def begin_recording(session: Session, given: JsonObject) -> JsonObject:
    """Record a new connection, so that the recording includes the handshake."""
    connection = session.connection(_server(given))
    await connection.recording.begin()
    return {"server": server_row(connection)}


async def end_recording(session: Session, given: JsonObject) -> JsonObject:
    name = _server(given)
    return {"name": name, "recording": session.connection(name).recording.end()}


def _server(given: JsonObject) -> str:
    if not isinstance(name := given.get("server"), str):
        raise InvalidArguments("server: a string is needed.")
    return name
