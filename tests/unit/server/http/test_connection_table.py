"""Which connections are closed to free memory, and when their timers tick."""

import pytest

from emceepee.server.http.connection_table import (
    MOST_TICKS_AT_ONCE,
    TICK_SECONDS,
    ConnectionTable,
    choose_surplus,
)
from emceepee.state.limits import Limits
from support.fakes.clock import settle

MIB = 1 << 20


class Slow:
    """A connection with a slow reader."""

    def __init__(self, unread_bytes: int, stalled_ticks: int = 0) -> None:
        self.unread_bytes, self.stalled_ticks = unread_bytes, stalled_ticks
        self.ticks = 0
        self.is_given_up = False

    def tick(self) -> None:
        self.ticks += 1

    tick_writing = tick

    def give_way(self) -> None:
        self.is_given_up = True


@pytest.mark.parametrize(
    ("unread", "surplus"),
    [
        ({}, None),
        ({"a": (100, 50)}, None),
        ({"a": (101, 0)}, "a"),
        ({"a": (50, 3), "b": (50, 9), "c": (50, 0)}, "b"),
        ({"a": (60, 0), "b": (20, 1), "c": (30, 0)}, "a"),
        ({"a": (1, 60), "b": (120, 0), "c": (1, 60)}, "b"),
    ],
)
def test_the_connection_that_holds_the_most_memory_for_the_longest_is_closed(
    unread: dict[str, tuple[int, int]], surplus: str | None
) -> None:
    assert choose_surplus(unread, 100) == surplus


async def test_unread_responses_share_a_memory_budget_that_is_enforced_at_once() -> None:
    table = ConnectionTable(Limits(unread_bytes_in_all=2 * MIB))
    slow = [Slow(MIB, stalled_ticks=number) for number in range(3)]
    for connection in slow:
        table.begin_unread(connection)
    await settle()
    assert [one.is_given_up for one in slow] == [False, False, True]
    slow.append(Slow(2 * MIB - 1))
    table.begin_unread(slow[-1])
    await settle()
    assert [one.is_given_up for one in slow] == [False, True, True, True]


async def test_responses_that_were_read_do_not_count_toward_the_memory_budget() -> None:
    table = ConnectionTable(Limits(unread_bytes_in_all=2 * MIB))
    readers = [Slow(MIB) for _ in range(20)]
    for reader in readers:
        table.begin_unread(reader)
        reader.unread_bytes = 0
        table.end_unread(reader)
    await settle()
    assert not any(reader.is_given_up for reader in readers)


async def test_the_memory_budget_is_enforced_at_each_tick() -> None:
    table = ConnectionTable(Limits(unread_bytes_in_all=2 * MIB))
    slow = Slow(MIB)
    table.begin_unread(slow)
    slow.unread_bytes = 3 * MIB
    table.tick()
    assert slow.is_given_up


@pytest.mark.parametrize("turn", [0.1, 0.4, 0.9])
def test_connection_deadlines_are_met_however_slowly_the_event_loop_turns(turn: float) -> None:
    table, connection = ConnectionTable(Limits()), Slow(0)
    table.enter(connection)
    now = 1000.0
    while now < 1010:
        table.catch_up(now)
        now += turn
    assert connection.ticks == pytest.approx(10 / TICK_SECONDS, abs=2)


def test_a_process_that_was_suspended_gives_its_connections_time_before_their_deadlines() -> None:
    table, connection = ConnectionTable(Limits()), Slow(0)
    table.enter(connection)
    table.catch_up(1000.0)
    table.catch_up(2000.0)
    assert connection.ticks == MOST_TICKS_AT_ONCE
    table.catch_up(2000.0 + TICK_SECONDS)
    assert connection.ticks == MOST_TICKS_AT_ONCE + 1
