"""A session that another process loads after its first one was killed or stopped. The test controls the clock."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from emceepee.sessions.directory.open_sessions import TooManySessions
from emceepee.sessions.directory.saver import SAVE_SECONDS
from emceepee.sessions.directory.session_storage import SessionsUnavailable
from emceepee.sessions.session import Session
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.memory_store import MemoryStore
from emceepee.store.store import Commit, Lease, StoredSession, StoreUnavailable
from emceepee.tools.request_context import RequestContext
from support.fakes.clock import FakeClock, settle
from support.sessions.event_delivery import take
from support.sessions.installation import Installation, an_installation
from support.sessions.machine import Machine
from support.sessions.replies import without_help
from support.sessions.request_contexts import call_tool
from support.sessions.scene import scripted_spec

DESK = SessionKey("local", KeyKind.NAME, "desk")


async def value(session: Session, tool: str, /, context: RequestContext | None = None, **arguments: Any) -> Any:
    result = await call_tool({"name": tool, "arguments": arguments}, session, context)
    assert not result.get("isError"), result
    return result["structuredContent"]


async def a_task(place: Installation, session: Session) -> str:
    call = asyncio.create_task(value(session, "execute_tool", server="one", tool="slow", timeout_ms=0))
    await place.clock.advance(0.01)
    return str((await call)["proxy_task"]["task_id"])


def kinds(session: Session) -> list[str]:
    return [str(event.type) for event in take(session.activity).events]


async def test_after_a_kill_a_session_is_found_by_the_same_key_with_the_profile_of_its_caller() -> None:
    machine = Machine()
    async with machine.process() as place:
        key, first = await place.directory.open("local")
        first.update_profile(label="agent 1", is_tab=True)
        await first.unsaved.save()
    async with machine.process() as place:
        again = await place.directory.use(key)
        assert again is not None
        assert (again.session_id, again.profile) == (first.session_id, first.profile)
        assert await place.directory.use(SessionKey("bob", key.kind, key.value)) is None, "it is not another's"


async def test_backends_receive_the_same_caller_id_after_a_restart() -> None:
    machine, seen = Machine(), []
    for _ in range(2):
        async with machine.process() as place:
            session = await place.directory.find_or_open(DESK)
            await value(session, "list_tools")
            seen += [dial.caller_id for dial in place.backend.dials]
    assert seen[0] is not None
    assert seen == [seen[0]] * 2


async def test_a_timer_due_during_the_downtime_fires_once_and_no_timer_fires_twice() -> None:
    machine = Machine()
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        for message, duration in (("early", 1_000), ("late", 60_000), ("later", 3_600_000)):
            await value(session, "set_timer", duration_ms=duration, message=message)
        await machine.clock.advance(2)
        assert kinds(session) == ["timer_expired"]
        await machine.clock.advance(SAVE_SECONDS)
    await machine.clock.advance(600)
    async with machine.process() as place:
        await machine.clock.advance(1)
        session = await place.directory.find_or_open(DESK)
        events = take(session.activity).events
        assert [event.data["message"] for event in events] == ["early", "late"], "early: nobody said that it was read"
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        assert [timer.message for timer in session.timers.all(include_inactive=False)] == ["later"]


async def test_a_stored_session_is_loaded_only_when_its_timer_is_due() -> None:
    machine = Machine()
    async with machine.process() as place:
        await value(await place.directory.find_or_open(DESK), "set_timer", duration_ms=60_000, message="tea")
        await place.directory.find_or_open(SessionKey("local", KeyKind.NAME, "idle"))
        await machine.clock.advance(1)
    async with machine.process() as place:
        assert len(place.directory) == 0
        await machine.clock.advance(58)
        assert len(place.directory) == 0
        await machine.clock.advance(2)
        session = place.directory.find(DESK)
        assert session is not None
        assert (len(place.directory), kinds(session)) == (1, ["timer_expired"])


async def test_events_are_repeated_if_the_delivery_of_their_reply_was_not_confirmed() -> None:
    machine = Machine()
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        await value(session, "set_timer", duration_ms=10, message="tea")
        await machine.clock.advance(1)
        context = RequestContext()
        told = await value(session, "await_activity", context, timeout_ms=100)
        await machine.clock.advance(1)
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        context = RequestContext()
        again = await value(session, "await_activity", context, timeout_ms=100)
        assert again["events"] == told["events"]
        context.confirm()
        await machine.clock.advance(1)
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        assert kinds(session) == []
        assert session.activity.after("0").events, "but a request for them still finds them"


async def test_the_content_of_a_reply_is_stored_before_the_reply_is_sent() -> None:
    machine = Machine()
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        timer = await value(session, "set_timer", duration_ms=60_000, message="tea")
        task = await a_task(place, session)
        assert not session.unsaved
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        assert [each.timer_id for each in session.timers.all(include_inactive=False)] == [timer["timerId"]]
        assert session.tasks.get(task).task_id == task


async def test_a_call_without_changes_writes_nothing_to_the_store() -> None:
    machine = Machine()
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        await value(session, "list_tools")
        context = RequestContext()
        await value(session, "list_timers", context)
        context.confirm()
        await machine.clock.advance(1)
        commits = counting_commits(machine.store)
        for _ in range(3):
            call = asyncio.create_task(value(session, "execute_tool", server="one", tool="echo"))
            (await place.backend.next_asked()).reply(content=[], structuredContent={})
            await call
        await machine.clock.advance(1)
        assert commits == []


async def test_after_a_restart_a_working_task_has_failed_and_a_finished_task_has_its_result() -> None:
    machine = Machine()
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        working, done = await a_task(place, session), await a_task(place, session)
        await place.backend.next_asked()
        (await place.backend.next_asked()).reply(content=[], answer=42)
        await settle()
        assert session.tasks.get(done).has_ended
        take(session.activity)
        await machine.clock.advance(1)
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        assert session.tasks.get(done).result == {"content": [], "answer": 42}
        failed = session.tasks.get(working)
        assert (failed.status, (failed.error or {})["code"]) == ("failed", "TOOL_ERR_SERVER_DISCONNECTED")
        assert (failed.error or {})["details"] == {"server": "one", "reason": "restart", "mayHaveRun": True}
        assert kinds(session)[-1] == "task_failed"
        await machine.clock.advance(1)
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        assert [task.status for task in session.tasks.all()] == ["failed", "completed"], "nothing fails twice"
        await machine.clock.advance(400)
        assert session.tasks.all() == [], "and what is kept for a while is not kept longer"


async def test_after_a_restart_an_open_question_expires_as_disconnected() -> None:
    machine = Machine()
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        await value(session, "list_tools")
        asking = asyncio.create_task(
            place.backend.link.listener.handle_request("elicitation/create", {"message": "Name?"}, None)
        )
        await settle()
        (question,) = session.questions.open()
        await machine.clock.advance(1)
    asking.cancel()
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        (gone,) = [event for event in take(session.activity).events if event.type == "elicitation_expired"]
        assert (gone.data["requestId"], gone.data["reason"]) == (question.request_id, "disconnected")
        assert session.questions.open() == []


async def test_after_a_restart_subscriptions_and_log_levels_are_restored_when_the_server_reconnects() -> None:
    machine = Machine()
    async with machine.process() as place:
        place.backend.answers["resources/subscribe"] = lambda _: {}
        session = await place.directory.find_or_open(DESK)
        await value(session, "subscribe_resource", server="one", uri="file:///a")
        await value(session, "set_log_level", server="one", level="debug")
    async with machine.process() as place:
        place.backend.answers["resources/subscribe"] = lambda _: {}
        session = await place.directory.find_or_open(DESK)
        await value(session, "list_tools")
        assert ("resources/subscribe", {"uri": "file:///a"}) in place.backend.seen
        assert ("logging/setLevel", {"level": "debug"}) in place.backend.seen


async def test_ids_do_not_decrease_when_the_clock_is_set_back() -> None:
    machine = Machine()
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        before = (await value(session, "set_timer", duration_ms=3_600_000, message="a"))["timerId"]
    machine.clock = FakeClock(machine.clock.now().replace(year=2020))
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        assert (await value(session, "set_timer", duration_ms=3_600_000, message="b"))["timerId"] > before


async def test_an_ended_session_does_not_return_after_a_restart() -> None:
    machine = Machine()
    async with machine.process() as place:
        key, _ = await place.directory.open_handle("local")
        await machine.clock.advance(1)
        await place.directory.close(key)
    async with machine.process() as place:
        assert await place.directory.use(key) is None


async def test_a_stored_session_that_is_not_loaded_can_be_ended() -> None:
    machine = Machine()
    async with machine.process() as place:
        key, _ = await place.directory.open_handle("local")
        await machine.clock.advance(1)
    async with machine.process() as place:
        assert (await place.directory.close(key), await place.directory.use(key)) == (True, None)


async def test_a_session_expires_in_the_store_as_it_would_in_memory() -> None:
    machine = Machine()
    async with machine.process(session_kept_seconds=3600) as place:
        await value(await place.directory.find_or_open(DESK), "list_timers")
        await machine.clock.advance(1)
    await machine.clock.advance(3602)
    async with machine.process(session_kept_seconds=3600) as place:
        assert await place.directory.use(DESK) is None


async def test_a_session_in_use_without_changes_does_not_expire_in_the_store() -> None:
    machine = Machine()
    async with machine.process(session_kept_seconds=3600) as place:
        for _ in range(90):
            await value(await place.directory.find_or_open(DESK), "list_timers")
            await machine.clock.advance(60)
    await machine.clock.advance(3000)
    async with machine.process(session_kept_seconds=3600) as place:
        assert await place.directory.use(DESK) is not None


async def test_an_added_server_survives_a_restart_and_a_removed_one_does_not() -> None:
    machine = Machine()
    async with machine.process(others=2) as place:
        session = await place.directory.find_or_open(DESK)
        for name in ("b", "a", "c"):
            place.add_backend(name)
            await session.servers.add(scripted_spec(name))
        await session.servers.remove("a")
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        assert [each.spec.name for each in session.connections] == ["one", "b", "c"]
        stranger = await place.directory.find_or_open(SessionKey("bob", KeyKind.NAME, "desk"))
        assert [each.spec.name for each in stranger.connections] == ["one"]


async def test_two_processes_share_added_servers_and_each_keeps_its_own_sessions() -> None:
    machine = Machine()
    async with machine.process(dies=False) as first, machine.process(dies=False) as second:
        mine = await first.directory.find_or_open(DESK)
        key, handle = await first.directory.open_handle("local")
        await handle.unsaved.save()
        await machine.clock.advance(1)
        assert await second.directory.use(key) is None, "a live process holds it"
        theirs = await second.directory.find_or_open(DESK)
        assert theirs.session_id != mine.session_id
        first.add_backend("new")
        await mine.servers.add(scripted_spec("new"))
        await second.registry.reload()
        assert theirs.has_server("new")
        await theirs.servers.remove("new")
        await first.registry.reload()
        assert not mine.has_server("new")


async def test_removing_and_adding_a_server_in_one_process_leaves_requests_of_the_other_one_intact() -> None:
    machine = Machine()
    async with machine.process(dies=False) as first, machine.process(dies=False) as second:
        mine = await first.directory.find_or_open(DESK)
        for place in (first, second):
            place.add_backend("new")
        await mine.servers.add(scripted_spec("new"))
        theirs = await second.directory.find_or_open(SessionKey("local", KeyKind.NAME, "other desk"))
        await theirs.connection("new").ready()
        await theirs.connection("new").settings.set_log_level("debug")
        take(theirs.activity)
        await mine.servers.replace(replace(scripted_spec("new"), timeout=7.0))
        await second.registry.reload()
        changed = theirs.connection("new")
        assert (changed.spec.timeout, changed.settings.log_level) == (7.0, "debug")
        assert [str(event.type) for event in take(theirs.activity).events] == ["server_disconnected"]


async def test_another_process_takes_over_a_session_at_once_when_its_holder_is_dead() -> None:
    machine = Machine()
    async with machine.process(dies=False) as first:
        first_store = machine.store
        session = await first.directory.find_or_open(DESK)
        await session.unsaved.save()
        async with machine.process(dies=False) as second:
            first_store.die()
            taken = await second.directory.use(DESK)
            assert taken is not None
            assert taken.session_id == session.session_id


async def test_a_suspended_process_that_lost_a_session_releases_it_without_overwriting_anything() -> None:
    machine = Machine()
    async with machine.process(dies=False) as place:
        session = await place.directory.find_or_open(DESK)
        await session.unsaved.save()
        assert await machine.store.take(DESK), "from now on the lease from before is out of date"
        timer = {"name": "set_timer", "arguments": {"duration_ms": 3_600_000, "message": "too late"}}
        result = await call_tool(timer, session, None)
        assert result["isError"], "what is not kept is not promised"
        assert without_help(result["structuredContent"]["error"])["details"] == {
            "reason": "replica",
            "mayHaveRun": True,
        }
        await settle()
        assert place.directory.find(DESK) is None
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        assert session.timers.all(include_inactive=True) == []


async def test_a_loaded_session_keeps_its_lease_while_its_other_connections_are_looked_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a restart, all of its connections return at once."""
    machine, line = Machine(), SessionKey("local", KeyKind.CONNECTION, "01CONNECTION")
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        session.keys |= {line}
        await value(session, "set_timer", duration_ms=60_000, message="before")
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        take_at_once, heard = machine.store.take, asyncio.Event()

        async def take_slowly(key: SessionKey) -> StoredSession | None:
            taken = await take_at_once(key)
            await heard.wait()
            return taken

        monkeypatch.setattr(machine.store, "take", take_slowly)
        asking = asyncio.create_task(place.directory.use(line))
        await settle()
        await value(session, "set_timer", duration_ms=60_000, message="meanwhile")
        heard.set()
        assert await asking is session


async def test_a_clean_stop_releases_sessions_with_all_of_their_events() -> None:
    machine = Machine()
    async with machine.process(dies=False) as place:
        session = await place.directory.find_or_open(DESK)
        await a_task(place, session)
        place.directory.stop_calls()
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        (task,) = session.tasks.all()
        assert "stopping" in (task.message or "")
        assert kinds(session).count("task_failed") == 1


class FailingStore(MemoryStore):
    """One whose disk is full, or cannot be read, whenever the test says so."""

    is_full = is_unreadable = False

    def commit_now(self, commits: Any) -> Any:
        if self.is_full:
            raise StoreUnavailable("the disk is full")
        return super().commit_now(commits)

    async def take(self, key: SessionKey) -> Any:
        if self.is_unreadable:
            raise StoreUnavailable("it cannot be read")
        return await super().take(key)


async def test_while_the_store_cannot_write_sessions_continue_and_their_changes_are_written_later() -> None:
    clock, store = FakeClock(), FailingStore(is_durable=True)
    async with an_installation(store=store, clock=clock) as place:
        session = await place.directory.find_or_open(DESK)
        await session.unsaved.save()
        store.is_full = True
        for message in ("a", "b"):
            await value(session, "set_timer", duration_ms=3_600_000, message=message)
        assert place.directory.storage.problem == "the disk is full"
        (gone, _) = session.timers.all(include_inactive=False)
        await value(session, "delete_timer", timer_id=gone.timer_id)
        await clock.advance(3600)
        store.is_full = False
        await clock.advance(31)
        assert not place.directory.storage.problem
        assert not session.unsaved
        store.die()
    async with an_installation(store=store.another_process(), clock=clock) as place:
        session = await place.directory.find_or_open(DESK)
        assert len([event for event in take(session.activity).events if event.type == "timer_expired"]) == 1


class RecoveringStore(MemoryStore):
    """A store whose commits fail while it is full. Otherwise each of them waits for a turn, if the test gives turns."""

    is_quick = is_full = False
    turns: asyncio.Semaphore | None = None

    async def commit(self, commits: Any) -> Any:
        if self.turns is not None:
            await self.turns.acquire()
        if self.is_full:
            raise StoreUnavailable("the disk is full")
        return super().commit_now(commits)


async def test_a_change_counts_as_saved_only_when_everything_that_a_reply_reported_unsaved_is_stored() -> None:
    """A change during the first successful commit is in the next one, though its reply waited for neither."""
    clock, store = FakeClock(), RecoveringStore(is_durable=True)
    async with an_installation(store=store, clock=clock) as place:
        session = await place.directory.find_or_open(DESK)
        await session.unsaved.save()
        store.is_full = True
        await value(session, "set_timer", duration_ms=3_600_000, message="a")
        store.is_full, store.turns = False, asyncio.Semaphore(0)
        await clock.advance(31)
        await value(session, "set_timer", duration_ms=3_600_000, message="b")
        store.turns.release()
        await settle()
        found = place.directory.storage.problem, place.directory.storage.unsaved_problem
        store.turns.release()
        await settle()
        assert found == (None, "the disk is full"), "replies wait for their changes again, but b is not stored"
        assert (place.directory.storage.unsaved_problem, bool(session.unsaved)) == (None, False)
        store.turns = None


async def test_a_session_that_is_temporarily_unreadable_is_not_reported_as_unknown() -> None:
    clock, store = FakeClock(), FailingStore(is_durable=True)
    store.is_unreadable = True
    async with an_installation(store=store, clock=clock) as place:
        with pytest.raises(SessionsUnavailable, match="Try again later"):
            await place.directory.use(SessionKey("local", KeyKind.ID, "x"))
        assert await place.directory.find_or_open(DESK), "who names a session gets one"


async def test_loading_a_session_at_the_limit_evicts_an_idle_one_to_the_store() -> None:
    machine = Machine()
    names = [SessionKey("local", KeyKind.NAME, name) for name in "abc"]
    async with machine.process() as place:
        for name in names:
            await value(await place.directory.find_or_open(name), "set_timer", duration_ms=3_600_000, message="x")
    async with machine.process(sessions_per_principal=2) as place:
        for name in [*names, *names]:
            session = await place.directory.use(name)
            assert session is not None
            assert len(session.timers.all(include_inactive=False)) == 1
            assert len(place.directory) <= 2
        for name in names:
            if (session := place.directory.find(name)) is not None:
                session.open_streams += 1
        with pytest.raises(TooManySessions):
            await place.directory.use(next(name for name in names if place.directory.find(name) is None))


async def test_a_timer_due_at_the_session_limit_fires_once_its_session_can_be_loaded() -> None:
    machine = Machine()
    async with machine.process() as place:
        await value(await place.directory.find_or_open(DESK), "set_timer", duration_ms=10_000, message="tea")
    async with machine.process(sessions_per_principal=1) as place:
        busy = await place.directory.find_or_open(SessionKey("local", KeyKind.NAME, "busy"))
        busy.open_streams += 1
        await machine.clock.advance(30)
        assert place.directory.find(DESK) is None
        busy.open_streams -= 1
        await machine.clock.advance(61)
        session = place.directory.find(DESK)
        assert session is not None
        assert kinds(session) == ["timer_expired"]


@pytest.mark.parametrize("others", ["", "ac"])
async def test_a_session_that_fails_to_load_blocks_no_other_one_and_is_retried_later(
    others: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    machine = Machine()
    keys = [SessionKey("local", KeyKind.NAME, name) for name in sorted(f"{others}b")]
    bad = SessionKey("local", KeyKind.NAME, "b")
    async with machine.process() as place:
        for key in keys:
            await value(await place.directory.find_or_open(key), "set_timer", duration_ms=10_000, message="tea")
    async with machine.process() as place:
        open_session = Session.open

        async def refuse_one(session: Session) -> None:
            if bad in session.keys:
                raise ZeroDivisionError("a defect")
            await open_session(session)

        with monkeypatch.context() as patch:
            patch.setattr(Session, "open", refuse_one)
            await machine.clock.advance(11)
        assert [key.value for key in keys if place.directory.find(key) is not None] == list(others)
        errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert errors == ["session_not_loaded"]
        await machine.clock.advance(60)
        session = place.directory.find(bad)
        assert session is not None
        assert kinds(session) == ["timer_expired"]


def counting_commits(store: MemoryStore) -> list[int]:
    """How many sessions each commit from now on changes."""
    counted: list[int] = []
    commit = store.commit_now

    def counting(commits: "list[Commit]") -> "list[Lease | None]":
        counted.append(len(commits))
        return list(commit(commits))

    store.commit_now = counting  # type: ignore[method-assign, assignment]
    return counted


async def test_the_changes_of_all_sessions_are_written_in_one_commit() -> None:
    machine = Machine()
    async with machine.process() as place:
        sessions = [await place.directory.find_or_open(SessionKey("local", KeyKind.NAME, name)) for name in "abc"]
        await machine.clock.advance(1)
        commits = counting_commits(machine.store)
        for session in sessions:
            session.update_profile(label="x")
        await machine.clock.advance(2 * SAVE_SECONDS)
        assert commits == [3]


@pytest.mark.parametrize("keeps_its_own", [True, False])
async def test_a_session_that_a_forged_key_maps_to_another_principal_is_refused(keeps_its_own: bool) -> None:
    """Otherwise write access to the store would be enough to use the servers of others."""
    machine, eve = Machine(), SessionKey("eve", KeyKind.NAME, "desk")
    async with machine.process() as place:
        session = await place.directory.find_or_open(DESK)
        await session.unsaved.save()
    memory = machine.store._memory
    (row,) = memory.sessions.values()
    row.head = replace(row.head, keys=frozenset({DESK, eve} if keeps_its_own else {DESK}))
    memory.keys[eve] = row.head.session_id
    async with machine.process() as place:
        with pytest.raises(SessionsUnavailable):
            await place.directory.use(eve)
