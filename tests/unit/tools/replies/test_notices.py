"""How events are merged, truncated, and counted in a reply."""

from datetime import UTC, datetime

import pytest

from emceepee.state.events import Delivery, Event, EventType
from emceepee.tools.declaration.declaration import Mentions
from emceepee.tools.replies.notices import digest_events, leftovers
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LARGE: JsonObject = {"params": {"text": "x" * 3000}}


def an_event(number: int, kind: EventType = EventType.NOTIFICATION, **data: object) -> Event:
    return Event(event_id=f"e{number}", type=kind, server="one", created_at=NOW, data=data)


def test_the_first_event_is_delivered_however_little_room_there_is() -> None:
    found = Delivery([an_event(0, n=0), an_event(1, method="m", n=1)])
    digest = digest_events(found, room=1)
    assert ([entry["id"] for entry in digest.entries], leftovers(found, digest)) == (["e0"], {"more": 1})


@pytest.mark.parametrize(("before", "asked"), [("e6", "e6"), (None, "0")])
def test_a_truncated_event_names_the_id_to_ask_after(before: str | None, asked: str) -> None:
    [entry] = digest_events(Delivery([an_event(7, **LARGE)], before=before), room=9999, event_room=2048).entries
    assert f"last_event_id={asked} " in entry["cut"]
    assert len(encode(entry)) <= 2048


def test_small_values_of_a_truncated_event_stay_whole() -> None:
    event = an_event(1, method="notifications/x", timestamp="now", **LARGE)
    [entry] = digest_events(Delivery([event]), room=9999, event_room=2048).entries
    assert (entry["data"]["method"], entry["data"]["timestamp"]) == ("notifications/x", "now")


def test_only_notifications_with_equal_server_method_and_params_are_merged() -> None:
    same: JsonObject = {"method": "m", "params": {"a": 1}}
    events = [
        an_event(0, **same),
        an_event(1, **same | {"params": {"a": 2}}),
        an_event(2, **same | {"method": "n"}),
        an_event(3, EventType.TIMER_EXPIRED, **same),
        an_event(4, EventType.TIMER_EXPIRED, **same),
        an_event(5, **same),
    ]
    told = digest_events(Delivery(events), room=9999).entries
    assert [(entry["id"], entry.get("count")) for entry in told] == [
        ("e1", None),
        ("e2", None),
        ("e3", None),
        ("e4", None),
        ("e5", 2),
    ]


def test_events_already_mentioned_in_the_result_are_skipped_and_count_as_delivered() -> None:
    events = [an_event(0, EventType.TASK_COMPLETED, taskId="t"), an_event(1, EventType.TASK_COMPLETED, taskId="u")]
    digest = digest_events(Delivery(events), room=9999, mentions=Mentions(ended_task="t"))
    assert ([entry["id"] for entry in digest.entries], digest.count) == (["e1"], 2)
