"""Tools for timers, which deliver a message later as an event."""

from datetime import timedelta
from typing import Annotated, TypedDict, cast

from pydantic import Field

from emceepee.errors import InvalidArguments
from emceepee.sessions.session import Session
from emceepee.sessions.views import TimerView, timer_view
from emceepee.tools.declaration.argument_limits import LimitedBy
from emceepee.tools.declaration.declaration import Params, tool
from emceepee.tools.declaration.hints import READS_RECORDS, ToolEffect, found_by
from emceepee.tools.entry_pages import PAGING, Detailed, Entries, Rest, fields, page
from emceepee.wire.json_types import JsonObject

SHORTEST_INTERVAL_MS = 1000
DURATION = LimitedBy(most="longest_timer_seconds", least=1, description=f"An interval: at least {SHORTEST_INTERVAL_MS}")


class SetTimer(Params):
    """Parameters: a timer to start."""

    duration_ms: Annotated[int, DURATION] = DURATION.field()
    message: str = Field(min_length=1, max_length=500, description="Delivered when it fires")
    interval: bool = Field(False, description="Fire again and again")


class ListTimers(Detailed):
    """Parameters: the selected timers."""

    include_inactive: bool = Field(False, description="Also ended ones")


class OneTimer(Params):
    """Parameters: one timer."""

    timer_id: str = Field(description="Its timerId")


class StartedTimer(TypedDict):
    """A timer that was just started."""

    timerId: str
    message: str
    durationMs: int
    interval: bool
    createdAt: str
    expiresAt: str


TIMERS = Entries("list_timers", "timers", "timerId", fields("message", "expiresAt"))


class TimerList(Rest):
    """The active timers, or all with `include_inactive`."""

    timers: list[TimerView]


class DeletedTimer(TypedDict):
    """The deleted timer."""

    deleted: bool
    timer: TimerView


@tool(
    title="Set a timer",
    effect=ToolEffect(destructive=False, open_world=False),
    load=found_by("reminder delay alarm wake up"),
    is_durable=True,
)
async def set_timer(params: SetTimer, session: Session) -> StartedTimer:
    """Start a timer: its message arrives as an event (await_activity)."""
    if params.interval and params.duration_ms < SHORTEST_INTERVAL_MS:
        raise InvalidArguments(f"duration_ms: an interval must be at least {SHORTEST_INTERVAL_MS}.")
    most = round(session.limits.longest_timer_seconds * 1000)
    if params.duration_ms > most:
        raise InvalidArguments(f"duration_ms: may be at most {most}.")
    duration = timedelta(milliseconds=params.duration_ms)
    view = timer_view(session.timers.set(duration, params.message, repeats=params.interval))
    return {
        "timerId": view["timerId"],
        "message": view["message"],
        "durationMs": view["durationMs"],
        "interval": view["interval"],
        "createdAt": view["createdAt"],
        "expiresAt": view["expiresAt"],
    }


@tool(title="List timers", effect=READS_RECORDS, load=found_by("reminders timers"), unlisted=PAGING)
async def list_timers(params: ListTimers, session: Session) -> TimerList:
    """List the timers."""
    found = session.timers.all(include_inactive=params.include_inactive)
    entries = [cast(JsonObject, timer_view(item)) for item in found]
    return cast(TimerList, page(entries, params, TIMERS, room=session.limits.list_reply_bytes))


@tool(title="Show a timer", effect=READS_RECORDS, load=found_by("reminder timer status"))
async def get_timer(params: OneTimer, session: Session) -> TimerView:
    """One timer."""
    return timer_view(session.timers.get(params.timer_id))


@tool(
    title="Delete a timer",
    effect=ToolEffect(open_world=False),
    load=found_by("stop cancel reminder timer"),
    is_durable=True,
)
async def delete_timer(params: OneTimer, session: Session) -> DeletedTimer:
    """Stop a timer and delete it."""
    return {"deleted": True, "timer": timer_view(session.timers.delete(params.timer_id))}
