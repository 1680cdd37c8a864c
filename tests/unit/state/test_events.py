"""Events are stored for a limited time, delivered once each, and never skipped while they are stored."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from emceepee.state.events import Delivery, Event, EventBudget, EventType, Outbox
from support.sessions.event_delivery import take

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEEP = timedelta(minutes=30)
MOST = 20


def an_event(number: int, at: datetime = NOW) -> Event:
    return Event(event_id=f"e{number}", type=EventType.NOTIFICATION, server="one", created_at=at, data={"n": number})


def a_box(count: int = 0, *, most: int = MOST) -> Outbox:
    box = Outbox(most=most, keep=KEEP)
    for number in range(count):
        box.append(an_event(number))
    return box


def ids(delivery: Delivery) -> list[str]:
    return [event.event_id for event in delivery.events]


def test_appended_events_are_delivered_once_and_in_order() -> None:
    box = a_box(3)
    news = [box.has_news, ids(take(box)), box.has_news, ids(take(box))]
    assert news == [True, ["e0", "e1", "e2"], False, []]
    assert (len(box), box.last_id) == (3, "e2")


def test_an_empty_outbox_has_no_news_and_no_last_event() -> None:
    assert (a_box().has_news, a_box().last_id, take(a_box())) == (False, None, Delivery([]))


def test_events_after_a_known_event_can_be_read_again() -> None:
    box = a_box(4)
    take(box)
    assert ids(take(box, after="e1")) == ["e2", "e3"]
    assert ids(take(box, after="e1")) == ["e2", "e3"]
    assert take(box, after="e3") == Delivery([])


def test_an_unknown_event_id_returns_all_stored_events_and_reports_the_lost_position() -> None:
    box = a_box(2)
    take(box)
    assert take(box, after="gone") == Delivery([an_event(0), an_event(1)], cursor_lost=True)


def test_a_full_outbox_drops_its_oldest_tenth_and_counts_the_undelivered_events_once() -> None:
    box = a_box(MOST)
    assert box.append(an_event(MOST)) == MOST // 10
    delivery = take(box)
    assert (ids(delivery)[0], len(delivery.events), delivery.dropped) == ("e2", MOST - 1, 2)
    assert take(box) == Delivery([])


def test_an_eviction_of_delivered_events_is_not_reported_as_a_loss() -> None:
    box = a_box(MOST)
    take(box)
    box.append(an_event(MOST))
    assert take(box) == Delivery([an_event(MOST)])


def test_a_loss_counts_as_news_even_without_new_events() -> None:
    box = a_box(1, most=5)
    box.evict()
    news = [box.has_news, take(box), box.has_news]
    assert news == [True, Delivery([], dropped=1), False]


def test_a_tiny_outbox_still_evicts_one_event() -> None:
    assert ids(take(a_box(4, most=3))) == ["e1", "e2", "e3"]


def test_delivered_events_expire_after_the_retention_and_undelivered_ones_stay() -> None:
    box = a_box(2)
    take(box)
    box.append(an_event(2))
    assert box.expire(NOW + KEEP - timedelta(microseconds=1)) == 0
    assert box.expire(NOW + KEEP) == 2
    assert box.expire(NOW + KEEP * 100) == 0
    assert take(box) == Delivery([an_event(2)])


def test_the_outbox_warns_each_time_it_passes_four_fifths_of_its_capacity() -> None:
    box = a_box(most=10)
    warned = []
    for number in range(10):
        box.append(an_event(number))
        warned.append(box.take_warning())
    assert warned == [False] * 7 + [True, False, False]
    take(box)
    box.expire(NOW + KEEP)
    assert not box.is_crowded
    assert not box.take_warning()
    for number in range(8):
        box.append(an_event(number))
    assert (box.is_crowded, box.is_crowded) == (True, True), "looking changes nothing"
    assert (box.take_warning(), box.take_warning()) == (True, False)


def test_the_fullest_outbox_is_trimmed_when_all_outboxes_together_exceed_the_budget() -> None:
    budget = EventBudget(25)
    small, large = a_box(8), a_box(17)
    budget.join(small)
    budget.join(large)
    assert budget.enforce() == 0
    large.append(an_event(17))
    assert budget.enforce() == 2
    assert (len(small), len(large), take(large).dropped) == (8, 16, 2)


def test_the_budget_evicts_delivered_events_of_all_outboxes_before_undelivered_ones() -> None:
    budget = EventBudget(30)
    unseen, seen, mixed = a_box(12), a_box(8), a_box(10)
    take(seen)
    take(mixed, most=4)
    for box in (unseen, seen, mixed):
        budget.join(box)
    for number in range(12):
        (unseen if number < 8 else mixed).append(an_event(100 + number))
        budget.enforce()
        assert budget.used <= 30
        assert [take(box, most=0).dropped for box in (unseen, seen, mixed)] == [0, 0, 0]
    assert (len(seen), len(unseen), len(mixed)) == (0, 20, 10)
    mixed.append(an_event(200))
    budget.enforce()
    assert take(unseen).dropped == 2  # now only the fullest can be evicted


def large(number: int, size: int) -> Event:
    return replace(an_event(number), size=size)


def test_an_outbox_is_limited_in_bytes_and_counts_undelivered_evictions() -> None:
    box = Outbox(most=MOST, keep=KEEP, most_bytes=1000)
    assert [box.append(large(number, 300)) for number in range(5)] == [0, 0, 0, 1, 1]
    assert (box.bytes, ids(take(box, most=0))) == (900, [])
    assert take(box).dropped == 0  # already reported
    assert box.append(large(9, 2000)) == 4  # even the new event
    assert (len(box), box.bytes) == (0, 0)


def test_all_outboxes_together_are_limited_in_bytes_and_the_largest_is_trimmed() -> None:
    budget, small, big = EventBudget(100, 1000), a_box(), a_box()
    for box in (small, big):
        budget.join(box)
    for number in range(5):
        small.append(large(number, 10))
        big.append(large(number, 180))
    assert budget.enforce() == 0
    big.append(large(9, 180))
    assert budget.enforce() == 2
    assert (budget.used_bytes, len(small), len(big)) == (770, 5, 4)
    budget.leave(big)
    assert (budget.used, budget.used_bytes) == (5, 50)


def test_an_outbox_that_left_the_budget_no_longer_counts() -> None:
    budget = EventBudget(10)
    box = a_box(MOST)
    budget.join(box)
    budget.leave(box)
    budget.leave(box)
    assert (budget.enforce(), len(box)) == (0, MOST)


@pytest.mark.parametrize("most", [0, 1, 3, 10])
def test_the_event_budget_is_never_exceeded_and_enforcing_it_always_ends(most: int) -> None:
    budget = EventBudget(most)
    boxes = [a_box(count) for count in (0, 1, 7, 20)]
    for box in boxes:
        budget.join(box)
    evicted = budget.enforce()
    assert sum(map(len, boxes)) <= most
    assert evicted == 28 - sum(map(len, boxes)) == sum(take(box).dropped for box in boxes)


# Unread replies.


def test_events_of_an_unread_reply_are_delivered_again_before_newer_ones() -> None:
    box = a_box(4)
    lost = box.deliver(box.undelivered(), 2)
    assert ids(take(box)) == ["e2", "e3"]
    assert [event.event_id for event in box.redeliver(lost)] == ["e0", "e1"]
    box.append(an_event(4))
    assert (box.has_news, ids(take(box)), box.has_news) == (True, ["e0", "e1", "e4"], False)


def test_a_small_reply_takes_the_oldest_redelivered_events_and_the_rest_waits() -> None:
    box = a_box(3)
    box.redeliver(box.deliver(box.undelivered(), 3))
    assert [ids(take(box, most=1)) for _ in range(4)] == [["e0"], ["e1"], ["e2"], []]


def test_a_request_for_events_after_a_known_one_includes_redelivered_events() -> None:
    """The caller lost that reply and received a later one."""
    box = a_box(1)
    lost = box.deliver(box.undelivered(), 1)
    box.append(an_event(1))
    take(box)
    box.redeliver(lost)
    box.append(an_event(2))
    assert ids(take(box, after="e1")) == ["e0", "e2"]
    assert not box.has_news


def test_requested_events_that_did_not_fit_are_delivered_with_the_next_reply() -> None:
    box = a_box(5)
    take(box)
    assert ids(take(box, after="e0", most=2)) == ["e1", "e2"]
    assert (box.has_news, box.delivered) == (True, 3)
    box.append(an_event(5))
    assert [ids(take(box, most=2)) for _ in range(3)] == [["e3", "e4"], ["e5"], []]


def test_redelivered_events_do_not_expire_and_their_eviction_is_counted() -> None:
    box = a_box(2, most=5)
    lost = box.deliver(box.undelivered(), 2)
    box.redeliver(lost)
    assert box.expire(NOW + KEEP) == 0
    box.evict()
    assert take(box) == Delivery([an_event(1)], dropped=1)


def test_events_evicted_while_their_reply_was_in_flight_are_counted_as_lost() -> None:
    box = a_box(2, most=5)
    lost = box.deliver(box.undelivered(), 2)
    box.evict()
    box.redeliver(lost)
    assert take(box) == Delivery([an_event(1)], dropped=1)


def test_an_unread_count_of_lost_events_is_delivered_again() -> None:
    box = a_box(1, most=5)
    box.evict()
    lost = box.deliver(box.undelivered(), 0)
    box.redeliver(lost)
    assert take(box) == Delivery([], dropped=1)


@dataclass
class Kept:
    """An event in the model."""

    event: Event
    is_delivered: bool = False
    was_carried: bool = False


class OutboxAgainstAModel(RuleBasedStateMachine):
    """For any operations in any order, the outbox behaves like a plain list with flags."""

    def __init__(self) -> None:
        super().__init__()
        self.box = Outbox(most=MOST, keep=KEEP)
        self.kept: list[Kept] = []
        self.now = NOW
        self.made = 0
        self.owed_drops = 0
        self.told_drops = 0
        self.carried: list[str] = []
        self.passed_over: set[str] = set()

    def forget(self, count: int) -> None:
        gone, self.kept = self.kept[:count], self.kept[count:]
        self.owed_drops += sum(not item.is_delivered for item in gone)

    def delivered(self, delivery: Delivery, expected: list[Kept], *, seen: int = 0) -> None:
        """The caller confirms the first `seen` stored events, except those known to be unseen."""
        assert delivery.events == [item.event for item in expected]
        assert delivery.dropped == self.owed_drops
        self.told_drops += delivery.dropped
        self.owed_drops = 0
        for item in self.kept[:seen]:
            if not item.is_delivered and not item.was_carried:
                self.passed_over.add(item.event.event_id)
                item.is_delivered = True
        self.carried += [item.event.event_id for item in expected if not item.is_delivered]
        for item in expected:
            item.is_delivered = item.was_carried = True

    @rule(count=st.integers(1, 8), pause=st.sampled_from([0, 1, 600]))
    def append(self, count: int, pause: int) -> None:
        for _ in range(count):
            self.now += timedelta(seconds=pause)
            event = an_event(self.made, self.now)
            self.made += 1
            self.kept.append(Kept(event))
            evicted = self.box.append(event)
            if len(self.kept) > MOST:
                self.forget(MOST // 10)
                assert evicted == MOST // 10
            else:
                assert evicted == 0

    @rule()
    def take(self) -> None:
        self.delivered(take(self.box), [item for item in self.kept if not item.is_delivered])

    @rule(most=st.integers(0, 5))
    def take_some(self, most: int) -> None:
        self.delivered(take(self.box, most=most), [item for item in self.kept if not item.is_delivered][:most])

    @rule(most=st.integers(0, 5))
    def lose_a_reply(self, most: int) -> None:
        """Mark the events of the lost reply as unseen, and leave everything else unchanged."""
        found = self.box.undelivered()
        self.box.redeliver(self.box.deliver(found, min(most, len(found.events))))
        for item in [item for item in self.kept if not item.is_delivered][:most]:
            item.was_carried = True

    @precondition(lambda self: self.kept)
    @rule(data=st.data(), most=st.integers(0, 5) | st.just(MOST))
    def take_some_after_a_known_event(self, data: st.DataObject, most: int) -> None:
        index = data.draw(st.integers(0, len(self.kept) - 1))
        lost = [item for item in self.kept[: index + 1] if item.was_carried and not item.is_delivered]
        delivery = take(self.box, after=self.kept[index].event.event_id, most=most)
        assert not delivery.cursor_lost
        wanted = [*lost, *self.kept[index + 1 :]]
        self.delivered(delivery, wanted[:most], seen=index + 1)
        for item in wanted[most:]:  # requested, but not in this reply: undelivered again, and known to be unseen
            if item.is_delivered:
                item.is_delivered, item.was_carried = False, True
                self.carried = [event_id for event_id in self.carried if event_id != item.event.event_id]
                self.passed_over.discard(item.event.event_id)

    @rule()
    def take_after_an_unknown_event(self) -> None:
        delivery = take(self.box, after="never there")
        assert delivery.cursor_lost
        self.delivered(delivery, self.kept)

    @rule(pause=st.sampled_from([0, 600, 1800]))
    def expire(self, pause: int) -> None:
        self.now += timedelta(seconds=pause)
        old = 0
        while old < len(self.kept) and self.kept[old].is_delivered:
            if self.kept[old].event.created_at + KEEP > self.now:
                break
            old += 1
        assert self.box.expire(self.now) == old
        self.forget(old)

    @rule()
    def evict(self) -> None:
        count = min(MOST // 10, len(self.kept))
        assert self.box.evict() == count
        self.forget(count)

    @invariant()
    def looks_the_same(self) -> None:
        assert len(self.box) == len(self.kept) <= MOST
        assert self.box.last_id == (self.kept[-1].event.event_id if self.kept else None)
        assert self.box.has_news is (any(not item.is_delivered for item in self.kept) or self.owed_drops > 0)

    @invariant()
    def accounts_for_every_event_once(self) -> None:
        waiting = [item.event.event_id for item in self.kept if not item.is_delivered]
        assert len(set(self.carried)) == len(self.carried)
        assert not set(self.carried) & (set(waiting) | self.passed_over)
        accounted = len(self.carried) + len(self.passed_over) + len(waiting) + self.owed_drops + self.told_drops
        assert accounted == self.made


def test_an_outbox_delivers_no_event_twice_skips_no_stored_event_and_counts_each_loss_once() -> None:
    quick = settings(max_examples=100, stateful_step_count=40, deadline=None, database=None)
    run_state_machine_as_test(OutboxAgainstAModel, settings=quick)


def test_the_event_budget_always_knows_the_number_of_stored_events() -> None:
    budget, boxes = EventBudget(30), [Outbox(most=20, keep=timedelta(minutes=30)) for _ in range(3)]
    for box in boxes:
        budget.join(box)
    for number in range(100):
        boxes[number % 3].append(an_event(number))
        if number % 4 == 0:
            take(boxes[number % 2])
        budget.enforce()
        assert budget.used == sum(map(len, boxes)) <= 30
    budget.leave(boxes[0])
    budget.leave(boxes[0])
    assert budget.used == len(boxes[1]) + len(boxes[2])


def test_peeking_delivers_no_event_and_continues_at_its_position() -> None:
    box = a_box(3)
    events, number = box.peek(0)
    assert [event.event_id for event in events] == ["e0", "e1", "e2"]
    assert box.peek(number) == ([], number)
    assert ids(take(box)) == ["e0", "e1", "e2"]
    for count in range(3, 3 + MOST):
        box.append(an_event(count))
    assert [event.event_id for event in box.peek(number)[0]][-1] == f"e{2 + MOST}"
