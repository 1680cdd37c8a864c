"""Tools for explicit sessions, for callers whose protocol has none."""

from pydantic import Field

from emceepee.errors import Unsupported
from emceepee.json_types import JsonObject
from emceepee.tools.declaration import Caller, Office, Params, tool_without_session


class OpenSession(Params):
    """A session to open."""

    label: str | None = Field(None, max_length=200, description="For your own use")


class CloseSession(Params):
    """A session to end."""

    session: str = Field(description="Handle from open_session, or a session's name")


@tool_without_session
async def open_session(params: OpenSession, caller: Caller) -> JsonObject:
    """Open a further session, with connections, tasks and events of its own: for calls that pass its handle as
    `session`. Needed only to keep work apart, or if a call says so.
    """
    office = _office(caller)
    handle = await office.open()
    opened: JsonObject = {"session": handle, "expiresAfterIdleMs": office.idle_ms}
    return opened if params.label is None else opened | {"label": params.label}


@tool_without_session
async def close_session(params: CloseSession, caller: Caller) -> JsonObject:
    """End a session and everything it started."""
    await _office(caller).close(params.session)
    return {"closed": params.session}


def _office(caller: Caller) -> Office:
    if caller.office is None:
        raise Unsupported("This connection has one session, and no others can be opened on it.")
    return caller.office
