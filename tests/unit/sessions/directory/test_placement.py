"""Knowledge of a process about other processes with the same store."""

import asyncio
from collections.abc import Sequence
from random import Random

import pytest

from emceepee.sessions.directory.placement import READERS, TURN_SECONDS, Placement
from emceepee.state.replica import Replica
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.memory_store import MemoryStore
from support.fakes.clock import FakeClock

LEASE_SECONDS = 6.0


class CountingStore(MemoryStore):
    """Counts the reads of the replica list."""

    reads = 0

    async def replicas(self) -> Sequence[Replica]:
        self.reads += 1
        return await super().replicas()


def with_others(count: int) -> tuple[CountingStore, list[MemoryStore]]:
    store = CountingStore(is_durable=True, address="http://0")
    return store, [store.another_process(f"http://{number}") for number in range(1, count + 1)]


async def a_placement(store: MemoryStore, clock: FakeClock | None = None) -> Placement:
    placement = Placement(store, clock or FakeClock(), lease_seconds=LEASE_SECONDS, random=Random(1))
    await placement.refresh()
    return placement


def opened_at(slot: int) -> SessionKey:
    return SessionKey("local", KeyKind.ID, f"01ABC-{slot:02d}")


def me(store: MemoryStore) -> Replica:
    assert store.replica is not None
    return store.replica


async def test_a_replica_that_one_process_reports_as_gone_is_gone_for_every_process_that_is_notified() -> None:
    store, (second, third) = with_others(2)
    first, hears = await a_placement(store), await a_placement(second)
    told: list[int] = []
    hears.when_gone(lambda replica: told.append(replica.slot))
    hears.learn(SessionKey("local", KeyKind.NAME, "desk"), me(third))
    third.die()
    assert hears.guess(opened_at(2)) == me(third)
    await first.refresh()
    assert told == [2]
    assert hears.guess(opened_at(2)) is None
    assert hears.guess(SessionKey("local", KeyKind.NAME, "desk")) is None
    assert hears.guess(opened_at(0)) == me(store), "the others are there"


async def test_a_replica_ignores_an_announcement_of_its_own_death() -> None:
    store, (second,) = with_others(1)
    placement = await a_placement(store)
    told: list[Replica] = []
    placement.when_gone(told.append)
    await second.announce_gone([me(store).epoch])
    assert (placement.count, told) == (2, [])


async def test_a_stale_answer_does_not_revive_a_replica_that_is_gone() -> None:
    store, (second, third) = with_others(2)
    placement = await a_placement(store)
    third.die()
    await second.announce_gone([me(third).epoch])
    placement.learn(opened_at(2), me(third))
    assert placement.guess(opened_at(2)) is None


async def test_the_new_replica_in_a_slot_is_used_as_soon_as_the_store_names_it() -> None:
    store, (second,) = with_others(1)
    placement = await a_placement(store)
    second.die()
    new = store.another_process("http://new")
    assert me(new).slot == 1
    placement.learn(SessionKey("local", KeyKind.NAME, "desk"), me(new))
    assert placement.guess(opened_at(1)) == me(new)


@pytest.mark.parametrize(("others", "most_reads"), [(2, 31), (5 * READERS - 1, 12)])
async def test_many_replicas_share_the_reading_of_the_replica_list(others: int, most_reads: int) -> None:
    """The time is ten leases. With few replicas, each reads the list three times per lease."""
    store, _ = with_others(others)
    clock = FakeClock()
    placement = await a_placement(store, clock)
    store.reads = 0

    async def confirm() -> None:
        raise AssertionError("a memory store is always sure")

    running = asyncio.create_task(placement.run(confirm))
    await clock.advance(10 * LEASE_SECONDS)
    running.cancel()
    assert most_reads / 3 <= store.reads <= most_reads


async def test_a_single_replica_takes_its_turn_at_once_and_many_replicas_spread_theirs() -> None:
    alone = await a_placement(with_others(0)[0])
    assert alone.turn_delay() == 0
    many = await a_placement(with_others(100)[0])
    delays = [many.turn_delay() for _ in range(1000)]
    assert max(delays) <= 2 * 100 * TURN_SECONDS
    assert 0.9 < sum(delays) / 1000 / (100 * TURN_SECONDS) < 1.1


async def test_a_placement_observer_is_notified_only_when_replicas_join_or_leave() -> None:
    machine = MemoryStore(is_durable=True)
    store, heard = machine.another_process("unix:/replica/0"), list[list[str]]()
    placement = Placement(store, FakeClock(), lease_seconds=3)
    placement.watch(lambda: heard.append([each.address for each in placement.others]))
    await placement.refresh()
    heard.clear()
    other = store.another_process("unix:/replica/1")
    for _ in range(2):
        await placement.refresh()
    assert heard == [["unix:/replica/1"]]
    other.die()
    for _ in range(2):
        await placement.refresh()
    assert heard == [["unix:/replica/1"], []]


async def test_a_previously_unknown_holder_counts_as_a_joined_replica() -> None:
    store, heard = MemoryStore(is_durable=True).another_process("unix:/replica/0"), list[int]()
    placement = Placement(store, FakeClock(), lease_seconds=3)
    await placement.refresh()
    placement.watch(lambda: heard.append(1))
    holder = Replica(slot=9, epoch=9, address="unix:/replica/9")
    for value in ("a", "b"):
        placement.learn(SessionKey("ada", KeyKind.NAME, value), holder)
    assert heard == [1]
