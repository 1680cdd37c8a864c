"""Subscribers of emceepee://events are notified of new events at most once per interval, until they leave."""

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import cast

from emceepee.ids import Ulids
from emceepee.server.events_feed import EventsFeed
from emceepee.server.listen_requests import ListChange, resource_updated
from emceepee.sessions.events.activity import Activity
from emceepee.sessions.session import Session
from emceepee.sessions.unsaved import Unsaved
from emceepee.state.events import EventBudget, EventType
from emceepee.state.limits import Limits
from emceepee.tools.request_context import NO_CHANNEL
from support.fakes.clock import FakeClock, settle
from support.sessions.event_delivery import take

NEWS = resource_updated("emceepee://events")


def a_feed(activity: Activity) -> EventsFeed:
    """Return the feed of an otherwise unused session."""
    return EventsFeed(cast(Session, SimpleNamespace(activity=activity)), NO_CHANNEL.send)


def an_activity() -> Activity:
    clock, limits = FakeClock(), Limits()
    ids = Ulids(lambda: int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()))
    return Activity(clock, ids, limits, EventBudget(100), Unsaved())


async def test_simultaneous_events_cause_one_notification_per_subscriber() -> None:
    activity = an_activity()
    feed = a_feed(activity)
    first: list[ListChange] = []
    second: list[ListChange] = []
    feed.subscribe(first.append)
    feed.subscribe(second.append)
    for _ in range(5):
        activity.emit(EventType.NOTIFICATION, "one")
    await settle()
    assert (first, second) == ([NEWS], [NEWS])
    activity.emit(EventType.NOTIFICATION, "one")
    await settle()
    assert (first, second) == ([NEWS, NEWS], [NEWS, NEWS])


async def test_a_notification_of_new_events_delivers_no_event() -> None:
    activity = an_activity()
    a_feed(activity).subscribe(lambda _: None)
    activity.emit(EventType.NOTIFICATION, "one")
    await settle()
    assert len(take(activity).events) == 1


async def test_a_subscription_may_be_ended_twice_without_ending_others() -> None:
    activity = an_activity()
    feed = a_feed(activity)
    heard: list[ListChange] = []
    leave = feed.subscribe(heard.append)
    leave()
    leave()
    stay = feed.subscribe(heard.append)
    leave()
    activity.emit(EventType.NOTIFICATION, "one")
    await settle()
    assert heard == [NEWS]
    stay()
    activity.emit(EventType.NOTIFICATION, "one")
    await settle()
    assert heard == [NEWS]


async def test_a_subscriber_that_leaves_before_the_notification_receives_nothing() -> None:
    activity = an_activity()
    feed = a_feed(activity)
    heard: list[ListChange] = []
    leave = feed.subscribe(heard.append)
    activity.emit(EventType.NOTIFICATION, "one")
    leave()
    await settle()
    assert heard == []
