"""An outbox that is stored after every step and restored from the store."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from emceepee.state.events import DeliveryReceipt, Event, EventType, Outbox, OutboxMark

MOST = 20


def an_event(number: int) -> Event:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    return Event(event_id=f"{number:03}", type=EventType.NOTIFICATION, server="one", created_at=at, data={})


def a_box() -> Outbox:
    return Outbox(most=MOST, keep=timedelta(minutes=30))


def restarted(box: Outbox) -> Outbox:
    again = a_box()
    again.restore({each: event for each in box.numbers if (event := box.event(each)) is not None}, box.mark)
    return again


def ids(box: Outbox) -> list[str]:
    return [event.event_id for event in box.undelivered().events]


@pytest.mark.parametrize("seed", range(60))
def test_a_restored_outbox_delivers_the_events_that_were_not_surely_delivered(seed: int) -> None:
    chance, box = random.Random(seed), a_box()
    receipts: list[DeliveryReceipt] = []
    for number in range(80):
        match chance.randrange(5):
            case 0 | 1:
                box.append(an_event(number))
            case 2:
                found = box.undelivered()
                receipts.append(box.deliver(found, chance.randint(0, len(found.events))))
            case 3 if receipts:
                box.confirm(receipts.pop(chance.randrange(len(receipts))))
            case 4 if receipts:
                box.redeliver(receipts.pop(chance.randrange(len(receipts))))
        again = restarted(box)
        on_the_way = [box.event(each) for one in receipts for each in one.numbers if each in box.numbers]
        wanted = {event.event_id for event in [*box.undelivered().events, *on_the_way] if event is not None}
        assert ids(again) == sorted(wanted)
        lost_on_the_way = sum(one.dropped for one in receipts)
        assert again.undelivered().dropped == box.undelivered().dropped + lost_on_the_way
        assert (again.numbers, again.last_id) == (box.numbers, box.last_id)


def test_a_restored_outbox_continues_its_numbering() -> None:
    box = a_box()
    for number in range(MOST * 2):
        box.append(an_event(number))
    again = restarted(box)
    for each in (box, again):
        each.append(an_event(99))
    assert again.numbers == box.numbers


def test_events_before_a_gap_in_a_restored_outbox_are_lost_and_the_rest_is_available() -> None:
    box = a_box()
    box.restore({1: an_event(1), 3: an_event(3), 4: an_event(4)}, OutboxMark(1, (1,), 0))
    assert ids(box) == ["003", "004"]


def test_a_restored_outbox_without_events_continues_its_numbering() -> None:
    box = a_box()
    box.restore({}, OutboxMark(41, (), 0))
    box.append(an_event(41))
    assert (list(box.numbers), ids(box)) == ([41], ["041"])


def test_an_event_after_delivered_and_unstored_ones_is_undelivered_in_a_restored_outbox() -> None:
    box = a_box()
    box.restore({3: an_event(3)}, OutboxMark(6, (), 0))
    box.append(an_event(6))
    assert (list(box.numbers), ids(box)) == ([6], ["006"])
