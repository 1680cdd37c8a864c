"""Tools for explicit sessions, for callers whose protocol has none."""

from typing import NotRequired, TypedDict

from pydantic import Field

from emceepee.tools.declaration.declaration import Params, tool
from emceepee.tools.declaration.hints import ToolEffect, found_by
from emceepee.tools.request_context import RequestContext


class OpenSession(Params):
    """Parameters: a session to open."""

    label: str | None = Field(None, max_length=200, description="For your own use")


class CloseSession(Params):
    """Parameters: a session to end."""

    session: str = Field(description="Handle from open_session, or a session's name", repr=False)


class OpenedSession(TypedDict):
    """The handle works only for the caller that opened it."""

    session: str
    expiresAfterIdleMs: int
    label: NotRequired[str]


class ClosedSession(TypedDict):
    """Returned once everything that the session started has ended."""

    closed: str


@tool(
    title="Open a session",
    effect=ToolEffect(destructive=False, open_world=False),
    load=found_by("separate emceepee session handle"),
    needs_session=False,
    is_durable=True,
)
async def open_session(params: OpenSession, caller: RequestContext) -> OpenedSession:
    """For 2026-07-28 callers over HTTP that keep several things apart: open a session and pass its handle as `session`
    in other calls. Else you have one already.
    """
    handle, kept_ms = await caller.open_session()
    opened: OpenedSession = {"session": handle, "expiresAfterIdleMs": kept_ms}
    if params.label is not None:
        opened["label"] = params.label
    return opened


@tool(
    title="Close a session",
    effect=ToolEffect(),
    load=found_by("end emceepee session"),
    needs_session=False,
    is_durable=True,
)
async def close_session(params: CloseSession, caller: RequestContext) -> ClosedSession:
    """End a session of open_session and everything it started."""
    await caller.close_session(params.session)
    return {"closed": params.session}
