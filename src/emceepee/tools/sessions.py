"""Tools for explicit sessions, for callers whose protocol has none."""

from typing import NotRequired, TypedDict

from pydantic import Field

from emceepee.errors import Unsupported
from emceepee.tools.declaration import Caller, Params, SessionHandles, tool
from emceepee.tools.hints import Effect, found_by


class OpenSession(Params):
    """A session to open."""

    label: str | None = Field(None, max_length=200, description="For your own use")


class CloseSession(Params):
    """A session to end."""

    session: str = Field(description="Handle from open_session, or a session's name")


class OpenedSession(TypedDict):
    """The handle works only for the one who opened it."""

    session: str
    expiresAfterIdleMs: int
    label: NotRequired[str]


class ClosedSession(TypedDict):
    """Comes when everything the session started is gone."""

    closed: str


@tool(
    title="Open a session",
    effect=Effect(destructive=False, open_world=False),
    load=found_by("separate emceepee session handle"),
    needs_session=False,
)
async def open_session(params: OpenSession, caller: Caller) -> OpenedSession:
    """For 2026-07-28 callers over HTTP that keep several things apart: open a session and pass its handle as `session`
    in other calls. Else you have one already.
    """
    session_handles = _require_session_handles(caller)
    handle = await session_handles.open()
    opened: OpenedSession = {"session": handle, "expiresAfterIdleMs": session_handles.idle_ms}
    if params.label is not None:
        opened["label"] = params.label
    return opened


@tool(title="Close a session", effect=Effect(), load=found_by("end emceepee session"), needs_session=False)
async def close_session(params: CloseSession, caller: Caller) -> ClosedSession:
    """End a session of open_session and everything it started."""
    await _require_session_handles(caller).close(params.session)
    return {"closed": params.session}


def _require_session_handles(caller: Caller) -> SessionHandles:
    if caller.session_handles is None:
        raise Unsupported("This connection has one session, and no others can be opened on it.")
    return caller.session_handles
