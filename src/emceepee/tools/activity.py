"""The tool that waits for whatever happens next."""

from itertools import groupby
from typing import Annotated

from pydantic import Field

from emceepee.clock import within
from emceepee.codec import encode
from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.sessions.views import task_summary
from emceepee.state.events import Delivery, Event, EventType
from emceepee.tools.declaration import Caller, Params, tool
from emceepee.tools.heartbeat import heartbeat
from emceepee.tools.hints import CORE, READS_RECORDS
from emceepee.tools.limited import ACTIVITY, usual
from emceepee.tools.notices import DETAILS_BYTES, digest_events, leftovers, new_questions, pending_client

NO_EVENTS = Delivery([])


class AwaitActivity(Params):
    """How long to wait."""

    timeout_ms: Annotated[int, ACTIVITY] = Field(30_000, ge=100, le=usual(ACTIVITY), description="Longest wait")
    last_event_id: str | None = Field(None, description="Repeat what came after this lastEventId")


@tool(title="Wait for activity", effect=READS_RECORDS, load=CORE, carries_news=False)
async def await_activity(params: AwaitActivity, session: Session, caller: Caller) -> JsonObject:
    """Wait until something happens (a task ends, a server asks, notifies or is lost, a timer fires) and return it, with
    what waits on you.
    """
    activity = session.activity
    if caller.is_gone():
        return _report([{"type": "timeout"}], NO_EVENTS, session, caller)
    if params.last_event_id is not None:
        found = activity.after(params.last_event_id)
        if found.events or found.cursor_lost or found.dropped:
            return _report([{"type": "immediate"}], found, session, caller, whole=True)
    elif activity.has_news:
        return _report([{"type": "immediate"}], activity.undelivered(), session, caller)
    wake, timeout = activity.next_wake(), params.timeout_ms / 1000
    try:
        with session.waiting(), heartbeat(caller, session.clock, timeout):
            await within(session.clock, timeout, wake.next_event)
        triggers = list({encode(trigger): trigger for trigger in map(_trigger, wake.events)}.values())
    except TimeoutError:
        triggers = [{"type": "timeout"}]
    # Nobody would read the reply of a caller that has hung up: its events stay for the next one.
    return _report(triggers, NO_EVENTS if caller.is_gone() else activity.undelivered(), session, caller)


def _trigger(event: Event) -> JsonObject:
    if event.type is EventType.SERVER_DISCONNECTED:
        return {"type": "server_disconnected", "server": event.server}
    return {"type": "event", "server": event.server, "eventType": str(event.type)}


def _report(
    triggers: list[JsonObject], found: Delivery, session: Session, caller: Caller, *, whole: bool = False
) -> JsonObject:
    """What is found is delivered by this, as far as it fits, if it is read; `whole`: no event of it is cut."""
    limits = session.limits
    report: JsonObject = {
        "triggers": triggers,
        "events": [],
        "pending_server": [
            {"server": connection.spec.name, "working_tasks": [task_summary(task) for task in tasks]}
            for connection in session.connections
            if (tasks := session.tasks.working(connection.spec.name))
        ],
        "pending_client": pending_client(session.questions.open()),
        "lastEventId": session.activity.last_event_id,
    }
    room = limits.activity_bytes - len(encode(report)) - DETAILS_BYTES
    digest = digest_events(found, room=room, event_room=None if whole else limits.event_notice_bytes)
    taken = session.activity.deliver(found, digest.count)
    if caller.on_events is not None:
        caller.on_events(session, taken)
    report["events"] = [{"server": server, "events": events} for server, events in _grouped(digest.entries)]
    if new := new_questions(found, digest):
        report["pending_client"] = pending_client(session.questions.open(), detailed=new)
    if digest.count < len(found.events):  # whoever asks for what came after it must not miss the rest
        report["lastEventId"] = found.events[digest.count - 1].event_id
    if found.cursor_lost:
        report["cursorLost"] = True
    return report | leftovers(found, digest)


def _grouped(events: list[JsonObject]) -> list[tuple[str, list[JsonObject]]]:
    """By server, servers in the order in which they first speak; within one, the order of events is kept."""
    order = list(dict.fromkeys(event["server"] for event in events))
    ordered = sorted(events, key=lambda event: order.index(event["server"]))
    return [(server, list(group)) for server, group in groupby(ordered, key=lambda event: str(event["server"]))]
