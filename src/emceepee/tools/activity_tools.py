"""The tool that waits for the next event."""

from itertools import groupby
from typing import Annotated, NotRequired, TypedDict, cast

from pydantic import Field

from emceepee.clock import within
from emceepee.sessions.session import Session
from emceepee.sessions.views import EventView, PendingQuestion, TaskSummary, task_summary
from emceepee.state.events import Delivery, Event, EventType
from emceepee.tools.declaration.argument_limits import LimitedBy
from emceepee.tools.declaration.declaration import Brief, Params, tool
from emceepee.tools.declaration.hints import CORE, READS_RECORDS
from emceepee.tools.replies.heartbeat import heartbeat
from emceepee.tools.replies.notices import (
    DETAILS_BYTES,
    EVENT_NOTICE_BYTES,
    digest_events,
    leftovers,
    new_questions,
    pending_client,
    split_questions,
)
from emceepee.tools.request_context import RequestContext
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

ACTIVITY_BYTES = 64 << 10  # unless one event alone is larger
NO_EVENTS = Delivery([])
WAIT = LimitedBy(most="longest_call_seconds", least=100, description="Longest wait")


class AwaitActivity(Params):
    """Parameters: the longest wait, and the event from which to repeat."""

    timeout_ms: Annotated[int, WAIT] = WAIT.field(30_000)
    last_event_id: str | None = Field(None, description="Repeat what came after this lastEventId")


class Trigger(TypedDict):
    """Why the wait ended."""

    type: str
    server: NotRequired[str]
    eventType: NotRequired[str]


class EventEntry(EventView):
    """An event, or several equal ones."""

    firstId: NotRequired[str]
    count: NotRequired[int]
    cut: NotRequired[str]


class ServerEvents(TypedDict):
    """The events of one server."""

    server: str
    events: list[EventEntry]


class PendingServer(TypedDict):
    """A server that is busy."""

    server: str
    working_tasks: list[TaskSummary]


class PendingClient(TypedDict):
    """The questions that wait for the caller."""

    elicitations: list[PendingQuestion]
    sampling_requests: list[PendingQuestion]
    more: NotRequired[JsonObject]


class ActivityReport(TypedDict):
    """`triggers` are the reasons why the call returned: `immediate` (there were undelivered events), `event` with
    `server` and `eventType`, `server_disconnected` with `server`, or `timeout`. `events` are as in [events](events.md).
    `pending_server` has the working tasks of each server, and `pending_client` the questions that wait for you.
    `more` events did not fit: the next call returns them. `cursorLost` means that `last_event_id` is unknown or no
    longer stored, so all stored events were returned."""

    triggers: list[Trigger]
    events: list[ServerEvents]
    pending_server: list[PendingServer]
    pending_client: PendingClient
    lastEventId: str
    more: NotRequired[int]
    events_dropped: NotRequired[int]
    cursorLost: NotRequired[bool]


@tool(
    title="Wait for activity",
    effect=READS_RECORDS,
    load=CORE,
    brief=Brief(
        "Wait until something happens (a task ends, a server asks, notifies or is lost) and return it, with what waits "
        "on you.",
        ("timeout_ms",),
    ),
    carries_notices=False,
)
async def await_activity(params: AwaitActivity, session: Session, caller: RequestContext) -> ActivityReport:
    """Wait until something happens (a task ends, a server asks, notifies or is lost, a timer fires) and return it, with
    what waits on you.
    """
    activity = session.activity
    if caller.is_gone:
        return _report([{"type": "timeout"}], NO_EVENTS, session, caller)
    if params.last_event_id is not None:
        found = activity.after(params.last_event_id)
        if found.events or found.cursor_lost or found.dropped:
            return _report([{"type": "immediate"}], found, session, caller, whole=True)
    elif activity.has_news:
        return _report([{"type": "immediate"}], activity.undelivered(), session, caller)
    wake, timeout = activity.next_wake(), params.timeout_ms / 1000
    try:
        with session.activity.waiting(), heartbeat(caller, session.clock, timeout):
            await within(session.clock, timeout, wake.next_event)
        triggers = list({encode(trigger): trigger for trigger in map(_trigger, wake.events)}.values())
    except TimeoutError:
        triggers = []
    triggers = triggers or [{"type": "timeout"}]  # including when the process stops
    # A disconnected caller does not read its reply, so its events stay for the next reply.
    return _report(triggers, NO_EVENTS if caller.is_gone else activity.undelivered(), session, caller)


def _trigger(event: Event) -> JsonObject:
    if event.type is EventType.SERVER_DISCONNECTED:
        return {"type": "server_disconnected", "server": event.server}
    return {"type": "event", "server": event.server, "eventType": str(event.type)}


def _report(
    triggers: list[JsonObject], found: Delivery, session: Session, caller: RequestContext, *, whole: bool = False
) -> ActivityReport:
    """Return as many events as fit, which count as delivered once the reply is read. With `whole`, cut no event."""
    own, others = split_questions(session, session.questions.open(), caller.conversation)
    unread = session.questions.take_unread_dismissals(own)
    report: JsonObject = {
        "triggers": triggers,
        "events": [],
        "pending_server": [
            {"server": connection.spec.name, "working_tasks": [task_summary(task) for task in tasks]}
            for connection in session.connections
            if (tasks := session.tasks.working(connection.spec.name))
        ],
        "pending_client": pending_client(own, others=others, unread=unread),
        "lastEventId": session.activity.last_event_id,
    }
    room = ACTIVITY_BYTES - len(encode(report)) - DETAILS_BYTES
    hidden = [question.request_id for question in others]
    digest = digest_events(found, room=room, event_room=None if whole else EVENT_NOTICE_BYTES, hidden=hidden)
    receipt = session.activity.deliver(found, digest.count)
    caller.record_events(session, receipt)
    report["events"] = [{"server": server, "events": events} for server, events in _grouped(digest.entries)]
    if new := new_questions(found, digest):
        report["pending_client"] = pending_client(own, others=others, detailed=new, unread=unread)
    if digest.count < len(found.events):  # a caller that continues from it must not miss the rest
        report["lastEventId"] = found.events[digest.count - 1].event_id
    if found.cursor_lost:
        report["cursorLost"] = True
    return cast(ActivityReport, report | leftovers(found, digest))


def _grouped(events: list[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """Group events by server, in the order of each server's first event. Within a group, the order stays the same."""
    order = list(dict.fromkeys(event["server"] for event in events))
    ordered = sorted(events, key=lambda event: order.index(event["server"]))
    return [(server, list(group)) for server, group in groupby(ordered, key=lambda event: str(event["server"]))]
