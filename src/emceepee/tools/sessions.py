"""Tools for explicit sessions, for callers whose protocol has none."""

from pydantic import Field

from emceepee.json_types import JsonObject
from emceepee.tools.declaration import Params, tool
from emceepee.tools.hints import Effect, found_by
from emceepee.tools.request_context import RequestContext


class OpenSession(Params):
    """A session to open."""

    label: str | None = Field(None, max_length=200, description="For your own use")


class CloseSession(Params):
    """A session to end."""

    session: str = Field(description="Handle from open_session, or a session's name")


@tool(
    title="Open a session",
    effect=Effect(destructive=False, open_world=False),
    load=found_by("separate emceepee session handle"),
    needs_session=False,
)
async def open_session(params: OpenSession, caller: RequestContext) -> JsonObject:
    """For 2026-07-28 callers over HTTP that keep several things apart: open a session and pass its handle as `session`
    in other calls. Else you have one already.
    """
    handle, kept_ms = await caller.open_session()
    opened: JsonObject = {"session": handle, "expiresAfterIdleMs": kept_ms}
    return opened if params.label is None else opened | {"label": params.label}


@tool(title="Close a session", effect=Effect(), load=found_by("end emceepee session"), needs_session=False)
async def close_session(params: CloseSession, caller: RequestContext) -> JsonObject:
    """End a session of open_session and everything it started."""
    await caller.close_session(params.session)
    return {"closed": params.session}
