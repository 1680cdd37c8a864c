"""An owner whose lease in Redis expires loses nothing until a takeover, and changes nothing afterwards."""

import asyncio
from collections.abc import Collection

import pytest

from emceepee.clock import SystemClock
from emceepee.state.replica import GRACE_SHARE, SURE_SHARE
from emceepee.store.redis.connection.redis_link import LONGEST_PAUSE
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.store import HeldElsewhere, Lease, Store, StoreUnavailable, StoreUnusable
from support.store.store_engines import LEASE_SECONDS, RedisEngine, vanish
from support.store.stored_sessions import NOW, change, head, key, put, records, records_in, store_session, taken
from support.system.redis_server import RedisServer
from support.waiting import eventually

pytestmark = pytest.mark.parametrize("engine", ["redis", "cluster"], indirect=True)


@pytest.fixture
async def holder(engine: RedisEngine) -> RedisStore:
    return as_redis(await engine.open("http://holder"))


@pytest.fixture
async def other(engine: RedisEngine, holder: RedisStore) -> RedisStore:
    """It came later."""
    return as_redis(await engine.open("http://other"))


def as_redis(store: Store) -> RedisStore:
    assert isinstance(store, RedisStore)
    return store


def is_sure(store: RedisStore) -> bool:
    """A type checker takes what a property said for what it will say."""
    return store.is_sure


def is_in_doubt(store: RedisStore) -> bool:
    return store.is_in_doubt


async def test_a_lease_in_redis_is_renewed_as_long_as_its_process_lives(
    engine: RedisEngine, holder: RedisStore
) -> None:
    watch = holder._lease._watch
    for _ in range(6):
        before = watch.renewed_at

        async def is_renewed(before: float = before) -> bool:
            await engine.clock.advance(watch.renew_every / 10)
            return watch.renewed_at > before

        await eventually(is_renewed, what="it is renewed")
    await vanish(holder)
    await engine.clock.advance(LEASE_SECONDS)
    assert not is_sure(holder)


async def test_a_lease_expires_by_the_clock_of_redis(engine: RedisEngine) -> None:
    """The test uses real time and asserts no upper bound."""
    stores = [
        await RedisStore.open(engine.address, SystemClock(), key=engine.state_key, lease_seconds=1) for _ in range(2)
    ]
    killed, other = stores
    await store_session(killed, head("s1", expires_at=SystemClock().now().replace(year=2100)), e="1")
    await vanish(killed)

    async def is_taken_over() -> bool:
        try:
            return await other.take(key("s1")) is not None
        except HeldElsewhere:
            return False

    await eventually(is_taken_over, what="the other one has it")
    assert await other.replicas() == [other.replica]
    await other.close()


async def test_an_owner_that_failed_to_renew_its_lease_is_unsure_until_redis_answers(
    engine: RedisEngine, holder: RedisStore
) -> None:
    lease = await store_session(holder, head("s1"))
    engine.clock.sleep_through(LEASE_SECONDS * SURE_SHARE)
    assert not is_sure(holder)
    assert await holder.confirm({"s1": lease}) == []
    assert is_sure(holder)


async def test_renewing_an_expired_lease_does_not_make_its_owner_sure(
    engine: RedisEngine, holder: RedisStore, other: RedisStore
) -> None:
    kept, lost = await store_session(holder, head("s1")), await store_session(holder, head("s2"))
    engine.let_lapse(holder)
    await taken(other, key("s2"))
    await holder._lease.renew()
    assert not is_sure(holder), "somebody may have taken something"
    assert await holder.confirm({"s1": kept, "s2": lost}) == ["s2"]
    assert is_sure(holder)
    assert await holder.commit([change(head("s2"), lost, e="late")]) == [None]
    await put(holder, change(head("s1"), kept, e="1"))
    with pytest.raises(HeldElsewhere):
        await other.take(key("s1"))


async def test_an_owner_is_in_doubt_after_a_suspension_or_an_expired_lease_until_redis_confirms(
    engine: RedisEngine, holder: RedisStore, other: RedisStore
) -> None:
    await engine.clock.advance(LEASE_SECONDS * SURE_SHARE / 2)
    assert not is_in_doubt(holder)
    engine.clock.sleep_through(LEASE_SECONDS)
    assert is_in_doubt(holder)
    await holder.confirm({})
    assert not is_in_doubt(holder)
    engine.let_lapse(holder)
    await holder._lease.renew()
    assert is_in_doubt(holder), "its lease had lapsed"
    await holder.confirm({})
    assert not is_in_doubt(holder)


async def test_a_new_process_waits_before_it_takes_over_expired_leases(engine: RedisEngine, holder: RedisStore) -> None:
    """After a Redis outage every lease has expired, and the first replica to return would take everything."""
    await store_session(holder, head("s1", due_at=NOW))
    new = await RedisStore.open(engine.address, engine.clock, key=engine.state_key, lease_seconds=LEASE_SECONDS)
    engine.let_lapse(holder)
    with pytest.raises(HeldElsewhere) as caught:
        await new.take(key("s1"))
    assert caught.value.holder == holder.replica, "it may still be reached there"
    assert (await new.next_due(), await new.take_due(NOW, 10)) == (None, [])
    await vanish(holder)
    await engine.clock.advance(LEASE_SECONDS * GRACE_SHARE)
    assert await new.next_due() == NOW
    await taken(new, key("s1"))
    await new.close()


async def test_an_owner_renews_a_failing_lease_long_before_others_may_take_over(
    engine: RedisEngine, holder: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a new replica takes sessions whose newest state only their owner has."""
    renew, watch = holder._lease._renew, holder._lease._watch

    failures: list[float] = []

    async def fail() -> int:
        failures.append(engine.clock.monotonic())
        raise StoreUnavailable("it is away")

    async def has_failed() -> bool:
        await engine.clock.advance(watch.renew_every)
        return bool(failures)

    monkeypatch.setattr(holder._lease, "_renew", fail)
    await eventually(has_failed, what="a renewal fails")  # an earlier one may still wait for Redis
    await engine.clock.advance(2 * LEASE_SECONDS)
    before = watch.renewed_at
    monkeypatch.setattr(holder._lease, "_renew", renew)
    await engine.clock.advance(watch.retry_every)  # not further: Redis needs real time, and its timeouts use this clock
    await eventually(lambda: watch.renewed_at > before, what="it is renewed")
    assert watch.retry_every + LONGEST_PAUSE < LEASE_SECONDS * GRACE_SHARE


async def test_an_owner_whose_slot_was_taken_gets_another_slot_and_keeps_its_sessions(
    engine: RedisEngine, holder: RedisStore, other: RedisStore
) -> None:
    lease = await store_session(holder, head("s1", due_at=NOW))
    assert holder.replica is not None
    epoch = holder.replica.epoch
    engine.let_lapse(holder)
    usurper = await RedisStore.open(engine.address, engine.clock, key=engine.state_key, lease_seconds=LEASE_SECONDS)
    assert usurper.replica is not None
    assert usurper.replica.slot == 0
    await holder._lease.renew()
    assert (holder.replica.slot, holder.replica.epoch) == (2, epoch)
    assert not is_sure(holder)
    assert await holder.confirm({"s1": lease}) == []
    with pytest.raises(HeldElsewhere) as caught:
        await other.take(key("s1"))
    assert caught.value.holder == holder.replica
    assert await other.next_due() is None
    await put(holder, change(head("s1"), lease))
    await usurper.close()


async def test_a_commit_under_another_slot_updates_the_holder_of_the_session(
    engine: RedisEngine, holder: RedisStore, other: RedisStore
) -> None:
    lease = await store_session(holder, head("s1"))
    engine.let_lapse(holder)
    usurper = await RedisStore.open(engine.address, engine.clock, key=engine.state_key, lease_seconds=LEASE_SECONDS)
    await holder._lease.renew()
    await put(holder, change(head("s1"), lease, e="1"))
    with pytest.raises(HeldElsewhere) as caught:
        await other.take(key("s1"))
    assert caught.value.holder == holder.replica
    await usurper.close()


async def test_of_many_concurrent_takeovers_one_succeeds(engine: RedisEngine, holder: RedisStore) -> None:
    await store_session(holder, head("s1"), e="1")
    others = [as_redis(await engine.open()) for _ in range(4)]
    await engine.kill(holder)
    found = await asyncio.gather(*(each.take(key("s1")) for each in others), return_exceptions=True)
    assert sum(not isinstance(each, BaseException) for each in found) == 1
    assert sum(isinstance(each, HeldElsewhere) for each in found) == 3


async def test_a_takeover_fails_if_the_owner_has_confirmed_its_session_since_the_lease_expired(
    engine: RedisEngine, holder: RedisStore, other: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The confirmation comes between the lookup and the takeover."""
    lease = await store_session(holder, head("s1"))
    engine.let_lapse(holder)
    look = other._lease.roster

    async def look_and_be_slow(owners: Collection[str]) -> object:
        seen = await look(owners)
        if not holder.is_sure or holder._lease._term == 0:
            assert await holder.confirm({"s1": lease}) == []
        return seen

    monkeypatch.setattr(other._lease, "roster", look_and_be_slow)
    with pytest.raises(HeldElsewhere):
        await other.take(key("s1"))
    assert is_sure(holder)
    await put(holder, change(head("s1"), lease, e="1"))


async def test_a_session_taken_by_a_lost_request_is_released_so_that_its_timers_fire(
    engine: RedisEngine, holder: RedisStore, other: RedisStore
) -> None:
    """The response was lost: the process holds the session without a record of it."""
    lease = await store_session(holder, head("s1", due_at=NOW), e="1")
    kept = await store_session(holder, head("s2", due_at=NOW))
    await holder.release({"s1": lease})
    await taken(holder, key("s1"))
    holder._held_sessions.drop("s1")
    holder._held_sessions.may_have_lost_track = True
    assert [each.head.session_id for each in await holder.take_due(NOW, 10)] == ["s1"]
    await put(holder, change(head("s2"), kept, e="still held"))


async def test_opening_with_a_configured_slot_waits_as_long_as_a_lease_and_then_fails(
    engine: RedisEngine, holder: RedisStore
) -> None:
    async def open_in_slot_0() -> RedisStore:
        return await RedisStore.open(
            engine.address, engine.clock, key=engine.state_key, slot=0, lease_seconds=LEASE_SECONDS
        )

    opening = asyncio.ensure_future(open_in_slot_0())
    while not opening.done():
        await engine.clock.advance(LEASE_SECONDS / 20)
    with pytest.raises(StoreUnusable, match="has another replica in slot 0, which is alive"):
        await opening
    await holder.close()
    again = await open_in_slot_0()
    assert again.replica is not None
    assert again.replica.slot == 0
    await again.close()


# What Redis itself lets expire.


async def test_redis_keeps_a_session_a_day_beyond_its_expiry(engine: RedisEngine, holder: RedisStore) -> None:
    lease = await store_session(holder, head("s1"))
    tag = engine.names.tag_of("alice")
    names = [f"{tag}:session:s1", *keys_in(engine.server, f"{tag}:key:*")]
    assert len(names) == 2
    for name in names:
        assert 25 * 3600 < seconds_left(engine.server, name) <= 26 * 3600 + 60
    assert engine.server.command("PERSIST", names[0]) == b":1\r\n"
    await put(holder, change(head("s1", expires_at=NOW.replace(day=20)), lease))
    for name in names:
        assert seconds_left(engine.server, name) > 19 * 24 * 3600


async def test_a_session_that_redis_expired_leaves_no_trace(engine: RedisEngine, holder: RedisStore) -> None:
    await holder.release({"s1": await store_session(holder, head("s1", due_at=NOW))})
    tag = engine.names.tag_of("alice")
    engine.server.command("DEL", f"{tag}:session:s1")
    assert await holder.take(key("s1")) is None
    assert await holder.create(change(head("s2", key("s1")))) is not None, "its key leads nowhere"
    await holder.forget("s2", Lease(1, 1))
    assert await holder.take_due(NOW, 10) == []
    assert await holder.next_due() is None
    assert await holder.forget_expired(NOW, 0) == 0
    assert keys_in(engine.server, f"{tag}:*") in ([], [f"{tag}:owners"])


async def test_a_session_that_was_deleted_elsewhere_is_created_again_in_full(
    engine: RedisEngine, holder: RedisStore, other: RedisStore
) -> None:
    lease = await store_session(holder, head("s1"), e="1")
    await holder.forget("s1", lease)
    await store_session(other, head("s1"), f="2")
    assert await records_in(other, key("s1")) == records(f="2")
    assert await holder.commit([change(head("s1"), lease, e="late")]) == [None]


def seconds_left(server: RedisServer, name: str) -> float:
    return int(server.command("PTTL", name)[1:]) / 1000


def keys_in(server: RedisServer, pattern: str) -> list[str]:
    escaped = pattern.replace("{", r"\{").replace("}", r"\}")
    return [line.decode() for line in server.command("KEYS", escaped).split(b"\r\n") if line.startswith(b"{")]
