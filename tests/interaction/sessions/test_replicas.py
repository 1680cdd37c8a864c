"""Sessions of several replicas with a shared store: their holders, lookups, and takeovers."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from emceepee.errors import Unsupported
from emceepee.sessions.calls import RECORD_SECONDS
from emceepee.sessions.directory import session_storage
from emceepee.sessions.directory.placement import TURN_SECONDS
from emceepee.sessions.directory.session_storage import SessionElsewhere, SessionsUnavailable
from emceepee.sessions.session import Session
from emceepee.state.events import EventType
from emceepee.state.replica import Replica
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import Commit, HeldElsewhere, Lease, StoredSession, StoreUnavailable
from emceepee.tools.request_context import RequestContext
from support.fakes.clock import settle
from support.sessions.event_delivery import take
from support.sessions.installation import Installation, an_installation
from support.sessions.replicas import Replicas
from support.sessions.replies import has_moved, text_of, told_events, without_help
from support.sessions.request_contexts import call_tool

DESK = SessionKey("local", KeyKind.NAME, "desk")


async def whose(place: Installation, key: SessionKey, *, may_guess: bool = True) -> int | None:
    """The slot of the replica that is to be asked; None if the session is here now, or nowhere."""
    try:
        await place.directory.use(key, may_guess=may_guess)
    except SessionElsewhere as elsewhere:
        return elsewhere.holder.slot
    return None


async def refresh(place: Installation) -> None:
    assert place.placement is not None
    await place.placement.refresh()


def kinds(session: Session) -> list[str]:
    return [str(event.type) for event in take(session.activity).events]


async def test_session_ids_and_handles_contain_the_replica_that_created_them() -> None:
    async with Replicas().start(2) as (_, second):
        key, _ = await second.directory.open("local")
        handle, _ = await second.directory.open_handle("local")
        assert (key.value[-3:], handle.value[-3:]) == ("-01", "-01")
        assert len(key.value) == 26 + 3


async def test_with_one_replica_a_session_id_contains_no_replica() -> None:
    async with an_installation(store=MemoryStore(is_durable=True)) as place:
        key, _ = await place.directory.open("local")
        assert len(key.value) == 26


async def test_a_request_for_a_session_of_another_replica_is_forwarded_without_a_store_query() -> None:
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        await refresh(first)
        await refresh(second)
        key, _ = await second.directory.open("local")
        assert await whose(first, key) == 1, "not even stored yet"
        assert await whose(second, key) is None


async def test_the_holder_of_a_named_session_is_found_in_the_store_and_cached() -> None:
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        await second.directory.find_or_open(DESK)
        with pytest.raises(SessionElsewhere):
            await first.directory.find_or_open(DESK)
        replicas.stores[1].die()
        assert await whose(first, DESK) == 1, "as far as it knows"
        first.directory.storage.forget_guess(DESK)
        assert await whose(first, DESK) is None
        assert first.directory.find(DESK) is not None


async def test_a_replica_that_left_receives_no_requests_and_another_replica_takes_over_its_session() -> None:
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        await refresh(first)
        await refresh(second)
        key, session = await second.directory.open("local")
        await session.unsaved.save()
        replicas.stores[1].die()
        assert await whose(first, key) == 1
        await refresh(first)
        assert await whose(first, key) is None
        taken = first.directory.find(key)
        assert taken is not None
        assert taken.session_id == session.session_id
        assert taken.keys == frozenset({key}), "the id stays what it was"


async def test_the_sessions_of_a_lost_replica_are_kept_regardless_of_the_session_limit() -> None:
    replicas = Replicas()
    async with replicas.start(2, sessions_in_all=2) as (first, second):
        await refresh(first)
        lost = [(await second.directory.open("local"))[0] for _ in range(2)]
        own = [(await first.directory.open("local"))[0] for _ in range(2)]
        await replicas.clock.advance(1)
        replicas.stores[1].die()
        await refresh(first)
        await first.directory.look_after_store()
        for key in (*lost, *own):
            assert await first.directory.use(key) is not None


async def test_the_loss_of_many_replicas_at_once_causes_one_query_for_timers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replicas = Replicas()
    async with replicas.start(20) as (first, *others):
        key, session = await others[0].directory.open("local")
        session.timers.set(timedelta(seconds=1), "tea", repeats=False)
        await replicas.clock.advance(0.1)
        await refresh(first)
        looks: list[int] = []
        take_due = replicas.stores[0].take_due

        async def counted(now: datetime, most: int) -> Sequence[StoredSession]:
            taken = await take_due(now, most)
            looks.append(len(taken))
            return taken

        monkeypatch.setattr(replicas.stores[0], "take_due", counted)
        assert first.placement is not None
        first.placement.when_gone(first.directory.handle_lost_replica)
        for store in replicas.stores[1:]:
            store.die()
        replicas.clock.jump(1)
        await refresh(first)
        await replicas.clock.advance(2 * 20 * TURN_SECONDS)
        assert looks[0] == 1
        assert sum(looks) == 1
        assert first.directory.find(key) is not None


async def test_of_two_replicas_that_open_a_named_session_at_once_one_gets_it() -> None:
    async with Replicas().start(2) as places:
        opened = [asyncio.create_task(place.directory.find_or_open(DESK)) for place in places]
        await asyncio.wait(opened)
        errors = [task.exception() for task in opened]
        assert [type(error) for error in errors if error is not None] == [SessionElsewhere]
        assert sum(place.directory.find(DESK) is not None for place in places) == 1


async def test_a_replica_that_lost_a_session_in_a_takeover_releases_it_on_the_next_store_query(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        session = await first.directory.find_or_open(DESK)
        kept = await first.directory.find_or_open(SessionKey("local", KeyKind.NAME, "other"))
        with replicas.stores[0].paused():
            assert await second.directory.use(DESK, may_guess=False) is not None
        waiting = asyncio.create_task(call_tool({"name": "await_activity", "arguments": {}}, session, None))
        await settle()
        monkeypatch.setattr(MemoryStore, "is_sure", False)
        await first.directory.confirm()
        assert session.is_lost
        error = (await waiting)["structuredContent"]["error"]
        assert error["details"]["reason"] == "replica", "who waits is answered"
        assert first.directory.find(DESK) is None
        assert not kept.is_lost
        assert await whose(first, DESK) == 1


async def test_a_call_in_flight_fails_when_its_session_is_taken_over() -> None:
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        session = await first.directory.find_or_open(DESK)
        arguments = {"server": "one", "tool": "slow"}
        call = asyncio.create_task(call_tool({"name": "execute_tool", "arguments": arguments}, session, None))
        await settle()
        replicas.stores[0].die()
        assert await second.directory.use(DESK, may_guess=False) is not None
        session.lose()
        error = without_help((await call)["structuredContent"]["error"])
        assert error["details"] == {"server": "one", "reason": "replica", "mayHaveRun": True}


async def test_the_new_holder_reports_the_outcome_of_a_recent_call_that_was_in_flight() -> None:
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        session = await first.directory.find_or_open(DESK)
        arguments = {"server": "one", "tool": "slow", "args": {"depth": 3}}
        calls = [asyncio.create_task(call_tool({"name": "execute_tool", "arguments": arguments}, session, None))]
        await replicas.clock.advance(2 * RECORD_SECONDS)
        calls.append(asyncio.create_task(call_tool({"name": "execute_tool", "arguments": arguments}, session, None)))
        await replicas.clock.advance(RECORD_SECONDS / 2)
        replicas.stores[0].die()
        taken = await second.directory.use(DESK, may_guess=False)
        assert taken is not None
        (task,) = taken.tasks.all()
        assert (task.status, task.arguments) == ("failed", {"depth": 3})
        assert (task.error or {})["details"] == {"server": "one", "reason": "restart", "mayHaveRun": True}
        assert [kind for kind in kinds(taken) if kind.startswith("task")] == ["task_created", "task_failed"]
        session.lose()
        await asyncio.wait(calls)


async def test_the_new_holder_does_not_report_an_answered_call() -> None:
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        session = await first.directory.find_or_open(DESK)
        arguments = {"server": "one", "tool": "slow"}
        call = asyncio.create_task(call_tool({"name": "execute_tool", "arguments": arguments}, session, None))
        await replicas.clock.advance(2 * RECORD_SECONDS)
        (await first.backend.next_asked()).reply(content=[])
        await call
        replicas.stores[0].die()
        taken = await second.directory.use(DESK, may_guess=False)
        assert taken is not None
        assert taken.tasks.all() == []


async def test_a_stopping_replica_hands_over_idle_sessions_at_once_and_busy_sessions_when_they_finish() -> None:
    replicas = Replicas()
    busy_key = SessionKey("local", KeyKind.NAME, "busy")
    async with replicas.start(2) as (first, second):
        await first.directory.find_or_open(DESK)
        busy = await first.directory.find_or_open(busy_key)
        busy.open_calls += 1
        first.directory.begin_stop()
        await settle()
        assert await whose(second, DESK) is None
        assert second.directory.find(DESK) is not None
        assert await whose(second, busy_key) == 0
        busy.open_calls -= 1
        await replicas.clock.advance(0.1)
        assert await whose(second, busy_key, may_guess=False) is None


async def test_a_session_is_not_handed_over_before_the_delivery_of_its_last_reply_is_known() -> None:
    """Otherwise the next replica delivers the same events again."""
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        session = await first.directory.find_or_open(DESK)
        session.activity.emit(EventType.NOTIFICATION, "here", method="news")
        taken = session.activity.deliver(session.activity.undelivered(), 1)
        first.directory.begin_stop()
        await replicas.clock.advance(0.1)
        assert await whose(second, DESK) == 0
        session.activity.confirm(taken)
        await replicas.clock.advance(0.1)
        assert await whose(second, DESK, may_guess=False) is None
        assert kinds(await second.directory.find_or_open(DESK)) == []


async def test_a_session_of_a_replica_that_left_without_a_release_is_not_reported_as_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The store may be slow to release the session and no longer knows the address of its holder."""
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        await refresh(second)
        await first.directory.find_or_open(DESK)
        left = Replica(slot=7, epoch=99, address="")
        take = replicas.stores[1].take

        async def hesitate(key: SessionKey) -> Any:
            raise HeldElsewhere("it has only just left", left)

        monkeypatch.setattr(replicas.stores[1], "take", hesitate)
        assert await whose(second, DESK, may_guess=False) == 7
        monkeypatch.setattr(replicas.stores[1], "take", take)
        replicas.stores[0].die()
        assert await whose(second, DESK, may_guess=False) is None
        assert second.directory.find(DESK) is not None


class SlowStore(MemoryStore):
    """Commits wait until the test lets them go on."""

    is_quick = False
    may_go_on: "asyncio.Event | None" = None

    def another_process(self, address: str = "") -> "SlowStore":
        return SlowStore(is_durable=True, address=address, _memory=self._memory)

    async def commit(self, commits: Any) -> Any:
        if self.may_go_on is not None:
            await self.may_go_on.wait()
        return super().commit_now(commits)


async def test_a_waiter_for_the_next_commit_of_a_lost_session_does_not_wait_forever() -> None:
    replicas = Replicas(SlowStore(is_durable=True))
    async with replicas.start(2) as (first, second):
        session = await first.directory.find_or_open(DESK)
        await session.unsaved.save()
        store = replicas.stores[0]
        assert isinstance(store, SlowStore)
        store.may_go_on = asyncio.Event()
        session.update_profile(label="one")
        saving = [asyncio.create_task(session.unsaved.save())]
        await settle()
        session.update_profile(label="two")
        saving.append(asyncio.create_task(session.unsaved.save()))
        await settle()
        with store.paused():
            assert await second.directory.use(DESK, may_guess=False) is not None
        store.may_go_on.set()
        await asyncio.wait_for(asyncio.gather(*saving), 5)
        assert session.is_lost


async def test_a_result_from_a_session_that_another_replica_holds_reports_no_later_events() -> None:
    """The store of this replica keeps neither the end of the task nor its result."""
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        session = await first.directory.find_or_open(DESK)
        arguments = {"server": "one", "tool": "slow"}
        call = asyncio.create_task(call_tool({"name": "execute_tool", "arguments": arguments}, session, None))
        asked = await first.backend.next_asked()
        with replicas.stores[0].paused():
            assert await second.directory.use(DESK, may_guess=False) is not None
        session.activity.emit(EventType.NOTIFICATION, "one", method="news")
        asked.reply(content=[{"type": "text", "text": "done"}])
        result = await call
        assert (text_of(result), told_events(result)) == ("done", [])
        assert has_moved(result)
        assert session.is_lost


async def test_a_tool_that_began_before_the_takeover_of_its_session_was_found_promises_nothing() -> None:
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        session = await first.directory.find_or_open(DESK)
        with replicas.stores[0].paused():
            assert await second.directory.use(DESK, may_guess=False) is not None
        session.update_profile(label="changed")
        await session.unsaved.save()
        assert session.is_lost
        timer = {"duration_ms": 60_000, "message": "tea"}
        result = await call_tool({"name": "set_timer", "arguments": timer}, session, None)
        assert result["structuredContent"]["error"]["details"]["reason"] == "replica"


class UnsteadyStore(MemoryStore):
    """One that does not answer whenever the test says so."""

    is_away = False
    asked = 0

    def another_process(self, address: str = "") -> "UnsteadyStore":
        return UnsteadyStore(is_durable=True, address=address, _memory=self._memory)

    def _check(self) -> None:
        self.asked += 1
        if self.is_away:
            raise StoreUnavailable("it does not answer")

    def commit_now(self, commits: Any) -> Any:
        self._check()
        return super().commit_now(commits)

    async def create(self, commit: Commit) -> Lease | None:
        self._check()
        return await super().create(commit)

    async def take(self, key: SessionKey) -> Any:
        self._check()
        return await super().take(key)


async def test_during_a_store_outage_open_sessions_continue_and_others_are_refused_without_repeated_waits() -> None:
    replicas = Replicas(UnsteadyStore(is_durable=True))
    async with replicas.start(2) as (first, _):
        (store, _) = replicas.stores
        assert isinstance(store, UnsteadyStore)
        session = await first.directory.find_or_open(DESK)
        store.is_away, store.asked = True, 0
        assert await first.directory.find_or_open(DESK) is session
        for _ in range(3):
            with pytest.raises(SessionsUnavailable):
                await first.directory.find_or_open(SessionKey("local", KeyKind.NAME, "another"))
        assert store.asked == 1
        await first.directory.open("local")
        store.is_away = False
        await replicas.clock.advance(2)
        await first.directory.find_or_open(SessionKey("local", KeyKind.NAME, "another"))


async def test_after_a_store_outage_pending_changes_are_saved_at_once_and_replies_wait_for_commits_again() -> None:
    replicas = Replicas(UnsteadyStore(is_durable=True))
    timer = {"name": "set_timer", "arguments": {"duration_ms": 60_000, "message": "tea"}}
    async with replicas.start(2) as (first, second):
        (store, _) = replicas.stores
        assert isinstance(store, UnsteadyStore)
        session = await first.directory.find_or_open(DESK)
        store.is_away = True
        await call_tool(timer, session, None)
        await replicas.clock.advance(60)
        store.is_away = False
        store.listeners.handle_return()
        await call_tool(timer, session, None)
        assert first.directory.storage.problem is None
        store.die()
        taken = await second.directory.use(DESK, may_guess=False)
        assert taken is not None
        assert len(taken.timers.all(include_inactive=True)) == 2


async def test_a_stopping_replica_does_not_release_sessions_that_the_store_cannot_accept() -> None:
    replicas = Replicas(UnsteadyStore(is_durable=True))
    async with replicas.start(2) as (first, second):
        (store, _) = replicas.stores
        assert isinstance(store, UnsteadyStore)
        session = await first.directory.find_or_open(DESK)
        store.is_away = True
        await call_tool({"name": "set_timer", "arguments": {"duration_ms": 60_000, "message": "tea"}}, session, None)
        await replicas.clock.advance(1)
        first.directory.begin_stop()
        await replicas.clock.advance(1)
        assert await whose(second, DESK, may_guess=False) == 0
        store.is_away = False
        await replicas.clock.advance(5)
        await replicas.clock.advance(1)
        assert await whose(second, DESK, may_guess=False) is None
        assert len((await second.directory.find_or_open(DESK)).timers.all(include_inactive=True)) == 1


class ForgetfulStore(UnsteadyStore):
    """A replica with leases: when it returns, all others seem dead until it has read the store."""

    sees_others = False

    def another_process(self, address: str = "") -> "ForgetfulStore":
        return ForgetfulStore(is_durable=True, address=address, _memory=self._memory)


async def test_a_named_session_is_not_opened_twice_because_its_holder_seems_to_be_gone() -> None:
    replicas = Replicas(ForgetfulStore(is_durable=True))
    async with replicas.start(2) as (first, second):
        (_, store) = replicas.stores
        assert isinstance(store, ForgetfulStore)
        await first.directory.find_or_open(DESK)
        with replicas.stores[0].paused():
            await refresh(second)
        store.is_away = True
        with pytest.raises(SessionsUnavailable):
            await second.directory.find_or_open(DESK)
        store.is_away = False
        with pytest.raises(SessionsUnavailable):
            await second.directory.find_or_open(DESK)
        await replicas.clock.advance(2)
        with pytest.raises(SessionElsewhere):
            await second.directory.find_or_open(DESK)


class WakingStore(UnsteadyStore):
    """Of a process that stood still: its connection is lost, and it does not know what it still holds."""

    is_sure = True
    is_in_doubt = False
    stays_away = False

    def another_process(self, address: str = "") -> "WakingStore":
        return WakingStore(is_durable=True, address=address, _memory=self._memory)

    def wake(self, *, stays_away: bool = False) -> None:
        self.is_sure, self.is_in_doubt, self.is_away, self.stays_away = False, True, True, stays_away

    async def confirm(self, leases: Any) -> Any:
        if self.stays_away:
            raise StoreUnavailable("it does not answer")
        self.is_sure, self.is_in_doubt, self.is_away = True, False, False
        return await super().confirm(leases)


TIMER = {"name": "set_timer", "arguments": {"duration_ms": 60_000, "message": "tea"}}


@pytest.mark.parametrize("stays_away", [False, True])
async def test_a_reply_that_cannot_be_saved_after_its_process_was_suspended_promises_nothing(stays_away: bool) -> None:
    """This holds even if the store does not answer, because another replica may hold the session."""
    replicas = Replicas(WakingStore(is_durable=True))
    async with replicas.start(2) as (first, second):
        (store, _) = replicas.stores
        assert isinstance(store, WakingStore)
        session = await first.directory.find_or_open(DESK)
        await session.unsaved.save()
        with store.paused():
            assert await second.directory.use(DESK, may_guess=False) is not None
        store.wake(stays_away=stays_away)
        result = await call_tool(TIMER, session, None)
        assert result["structuredContent"]["error"]["details"]["reason"] == "replica"
        assert session.is_lost is not stays_away
        store.stays_away = False


async def test_a_process_that_was_suspended_and_lost_nothing_saves_its_promises() -> None:
    replicas = Replicas(WakingStore(is_durable=True))
    async with replicas.start(2) as (first, second):
        (store, _) = replicas.stores
        assert isinstance(store, WakingStore)
        session = await first.directory.find_or_open(DESK)
        await session.unsaved.save()
        store.wake()
        assert not (await call_tool(TIMER, session, None)).get("isError")
        store.die()
        taken = await second.directory.use(DESK, may_guess=False)
        assert taken is not None
        assert len(taken.timers.all(include_inactive=True)) == 1


async def test_a_named_session_is_not_opened_twice_because_the_other_replica_has_just_started() -> None:
    """A replica that has not listed the others assumes that it is alone. Both find no session of that name."""
    replicas = Replicas()
    async with replicas.start(1) as (first,), replicas.start(1) as (second,):
        assert first.placement is not None
        assert not first.placement.others
        opened = await asyncio.gather(
            first.directory.find_or_open(DESK), second.directory.find_or_open(DESK), return_exceptions=True
        )
        (elsewhere,) = (one for one in opened if isinstance(one, Exception))
        assert isinstance(elsewhere, SessionElsewhere)


async def test_with_too_many_unsaved_changes_no_session_can_be_opened(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_storage, "UNSAVED_RECORDS", 3)
    replicas = Replicas(UnsteadyStore(is_durable=True))
    async with replicas.start(1) as (place,):
        (store,) = replicas.stores
        assert isinstance(store, UnsteadyStore)
        session = await place.directory.find_or_open(DESK)
        store.is_away = True
        for number in range(3):
            timer = {"duration_ms": 60_000, "message": str(number)}
            result = await call_tool({"name": "set_timer", "arguments": timer}, session, None)
            assert not result.get("isError"), "sessions that run go on"
        await replicas.clock.advance(1)
        with pytest.raises(SessionsUnavailable, match="limit of unsaved changes"):
            await place.directory.open("local")
        store.is_away = False
        await replicas.clock.advance(60)
        await place.directory.open("local")


async def test_closing_a_session_of_another_replica_fails_with_the_name_of_that_replica() -> None:
    replicas = Replicas()
    async with replicas.start(2) as (first, second):
        await refresh(first)
        await refresh(second)
        key, _ = await second.directory.open_handle("local")
        context = RequestContext(directory=first.directory, principal="local")
        with pytest.raises(Unsupported, match="Another replica holds that session"):
            await context.close_session(key.value)
