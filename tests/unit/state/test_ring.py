from hypothesis import given
from hypothesis import strategies as st

from emceepee.state.ring import Ring, Tail


def a_ring(capacity: int, items: list[int]) -> Ring[int]:
    ring: Ring[int] = Ring(capacity)
    for item in items:
        ring.append(item)
    return ring


@given(st.integers(min_value=0, max_value=10), st.lists(st.integers()))
def test_a_ring_holds_the_newest_entries_and_counts_the_others(capacity: int, items: list[int]) -> None:
    ring = a_ring(capacity, items)
    kept = items[len(items) - min(capacity, len(items)) :]
    assert list(ring) == kept
    assert len(ring) == len(kept)
    assert ring.take_dropped() == len(items) - len(kept)


def test_a_ring_reports_dropped_entries_once() -> None:
    ring = a_ring(2, [1, 2, 3])
    assert [ring.take_dropped(), ring.take_dropped()] == [1, 0]


def test_taken_or_removed_ring_entries_are_not_counted_as_dropped() -> None:
    ring = a_ring(4, [1, 2, 3, 4])
    ring.remove(lambda item: item % 2 == 0)
    assert list(ring) == [1, 3]
    assert ring.take_all() == [1, 3]
    assert list(ring) == []
    assert ring.take_dropped() == 0


def test_a_ring_whose_entries_were_removed_still_respects_its_capacity() -> None:
    ring = a_ring(2, [1, 2])
    ring.remove(lambda item: item == 1)
    for item in (3, 4):
        ring.append(item)
    assert list(ring) == [3, 4]
    assert ring.take_dropped() == 1


def test_the_last_entries_of_a_ring_are_returned_in_order() -> None:
    ring = a_ring(5, [1, 2, 3])
    assert (ring.last(2), ring.last(9), ring.last(0)) == ([2, 3], [1, 2, 3], [])


@given(st.integers(min_value=1, max_value=5), st.lists(st.lists(st.integers(), max_size=8)))
def test_a_reader_that_keeps_up_with_a_tail_sees_every_stored_entry_once(
    capacity: int, batches: list[list[int]]
) -> None:
    tail: Tail[int] = Tail(capacity)
    number = 0
    for batch in batches:
        for item in batch:
            tail.append(item)
        new, number = tail.since(number)
        assert new == batch[-capacity:]
    assert tail.since(number) == ([], number)


def test_a_ring_is_limited_in_bytes() -> None:
    ring: Ring[str] = Ring(10, 100)
    for item, size in (("a", 40), ("b", 40), ("c", 40), ("d", 10)):
        ring.append(item, size)
    assert (list(ring), ring.bytes, ring.take_dropped()) == (["b", "c", "d"], 90, 1)
    ring.remove(lambda item: item == "c")
    assert (list(ring), ring.bytes) == (["b", "d"], 50)
    ring.append("too large", 101)
    assert (list(ring), ring.bytes, ring.take_dropped()) == ([], 0, 3)
    ring.append("e", 1)
    assert (ring.take_all(), ring.bytes) == (["e"], 0)


def test_a_tail_is_limited_in_bytes() -> None:
    tail: Tail[str] = Tail(10, 100)
    for item in "abcd":
        tail.append(item, 40)
    assert (list(tail), tail.since(0), tail.since(3)) == (["c", "d"], (["c", "d"], 4), (["d"], 4))
