"""Sessions that are opened, loaded, released, and closed at the same time."""

import asyncio
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import pytest

from emceepee.sessions.directory.open_sessions import TooManySessions
from emceepee.sessions.directory.session_storage import SessionsUnavailable
from emceepee.sessions.records import RecordKind
from emceepee.sessions.session import Session
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import RecordKey, StoredSession, StoreUnavailable
from support.fakes.clock import settle
from support.sessions.installation import Installation, an_installation
from support.sessions.machine import Machine
from support.sessions.request_contexts import call_tool
from support.sessions.session_connections import NoConnections

DESK = SessionKey("local", KeyKind.NAME, "desk")
LINES = [SessionKey("local", KeyKind.CONNECTION, f"line {number}") for number in range(3)]


def named(name: str) -> SessionKey:
    return SessionKey("local", KeyKind.NAME, name)


class SlowConnections(NoConnections):
    """Connections that close when the test sets `may_close`."""

    def __init__(self) -> None:
        self.may_close = asyncio.Event()

    async def close_all_of(self, session: Session) -> None:
        await self.may_close.wait()


class Gate:
    """Delays calls of one method, and counts them."""

    def __init__(self) -> None:
        self.is_open = asyncio.Event()
        self.calls = 0

    async def pass_through(self) -> None:
        self.calls += 1
        await self.is_open.wait()


def delay_opens(monkeypatch: pytest.MonkeyPatch) -> Gate:
    gate, open_session = Gate(), Session.open

    async def open_slowly(session: Session) -> None:
        await gate.pass_through()
        await open_session(session)

    monkeypatch.setattr(Session, "open", open_slowly)
    return gate


async def set_timer(session: Session, seconds: int = 3600) -> None:
    timer = {"name": "set_timer", "arguments": {"duration_ms": seconds * 1000, "message": "tea"}}
    result = await call_tool(timer, session)
    assert not result.get("isError"), result


async def store_sessions(machine: Machine, *keys: SessionKey, timer_seconds: int = 3600) -> None:
    async with machine.process(dies=False) as place:
        for key in keys:
            await set_timer(await place.directory.find_or_open(key), timer_seconds)


async def finish(*tasks: "asyncio.Task[Session]") -> list[Session]:
    return list(await asyncio.wait_for(asyncio.gather(*tasks), 5))


def find_or_open(place: Installation, key: SessionKey) -> "asyncio.Task[Session]":
    return asyncio.create_task(place.directory.find_or_open(key))


async def test_a_session_opens_while_another_one_is_being_released() -> None:
    """A slow server of one session does not delay other sessions."""
    machine = Machine()
    await store_sessions(machine, named("first"), named("second"))
    async with machine.process(sessions_per_principal=1) as place:
        slow = SlowConnections()
        place.directory.attach(slow)
        first = await place.directory.find_or_open(named("first"))
        await place.directory.find_or_open(named("second"))
        again = find_or_open(place, named("first"))
        await settle()
        assert not again.done()
        try:
            [other] = await finish(find_or_open(place, SessionKey("ada", KeyKind.NAME, "desk")))
        finally:
            slow.may_close.set()
        assert other.is_open
        [restored] = await finish(again)
        assert (restored.session_id, restored is first) == (first.session_id, False)


async def test_concurrent_requests_for_one_session_open_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with an_installation() as place:
        gate = delay_opens(monkeypatch)
        opening = [find_or_open(place, DESK) for _ in range(3)]
        await settle()
        assert gate.calls == 1
        gate.is_open.set()
        assert len(set(await finish(*opening))) == 1


@pytest.mark.parametrize("first_by_name", [True, False])
async def test_concurrent_connections_of_one_session_load_it_once(
    monkeypatch: pytest.MonkeyPatch, *, first_by_name: bool
) -> None:
    """A second take would invalidate the lease, and the first commit would lose the session."""
    machine = Machine()
    async with machine.process(dies=False) as place:
        session = await place.directory.find_or_open(DESK)
        session.keys |= set(LINES)
        await set_timer(session)
    async with machine.process() as place:
        gate = delay_opens(monkeypatch)
        takes: list[SessionKey] = []
        take = machine.store.take

        async def counted(key: SessionKey) -> StoredSession | None:
            takes.append(key)
            await asyncio.sleep(0)
            return await take(key)

        monkeypatch.setattr(machine.store, "take", counted)
        keys = [DESK, *LINES] if first_by_name else [*LINES, DESK]
        using = [asyncio.create_task(place.directory.use(key)) for key in keys]
        await settle()
        gate.is_open.set()
        found = await asyncio.wait_for(asyncio.gather(*using), 5)
        assert (takes, {id(each) for each in found}) == ([keys[0]], {id(place.directory.find(DESK))})
        [session] = place.directory.sessions
        await set_timer(session)
        assert not session.is_lost


async def test_a_connection_finds_its_session_with_all_changes_after_a_release(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    async with machine.process(dies=False) as place:
        session = await place.directory.find_or_open(DESK)
        session.keys |= set(LINES)
    await store_sessions(machine, named("second"))
    async with machine.process(sessions_per_principal=1) as place:
        session = await place.directory.find_or_open(DESK)
        slow = SlowConnections()
        place.directory.attach(slow)
        await set_timer(session)
        await place.directory.find_or_open(named("second"))
        using = asyncio.create_task(place.directory.use(LINES[0]))
        await settle()
        assert not using.done()
        slow.may_close.set()
        restored = await asyncio.wait_for(using, 5)
        assert restored is not None
        assert len(restored.timers.all(include_inactive=False)) == 1


async def test_a_waiting_request_opens_the_session_if_the_first_one_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with an_installation() as place:
        gate, open_session = Gate(), Session.open

        async def fail_once(session: Session) -> None:
            await gate.pass_through()
            if gate.calls == 1:
                raise OSError("the list of servers cannot be read")
            await open_session(session)

        monkeypatch.setattr(Session, "open", fail_once)
        failing, waiting = find_or_open(place, DESK), find_or_open(place, DESK)
        await settle()
        gate.is_open.set()
        [session] = await finish(waiting)
        with pytest.raises(OSError, match="cannot be read"):
            await failing
        assert place.directory.find(DESK) is session


async def test_a_waiting_request_opens_the_session_if_the_first_caller_disconnected(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with an_installation() as place:
        gate = delay_opens(monkeypatch)
        leaving, waiting = find_or_open(place, DESK), find_or_open(place, DESK)
        await settle()
        leaving.cancel()
        gate.is_open.set()
        [session] = await finish(waiting)
        assert place.directory.sessions == [session]


@pytest.mark.parametrize("limit", ["sessions_per_principal", "sessions_in_all"])
async def test_sessions_that_open_at_the_same_time_respect_the_limit(
    limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    limits: dict[str, Any] = {limit: 2}
    async with an_installation(**limits) as place:
        gate = delay_opens(monkeypatch)
        opening = [find_or_open(place, named(str(number))) for number in range(5)]
        await settle()
        assert gate.calls == 2
        gate.is_open.set()
        await finish(*opening)
        assert len(place.directory) == 2


async def test_a_session_over_the_limit_is_refused_after_the_concurrent_opens_finish(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with an_installation(sessions_per_principal=1) as place:
        gate = delay_opens(monkeypatch)
        busy = find_or_open(place, named("busy"))
        busy.add_done_callback(lambda task: setattr(task.result(), "open_streams", 1))
        refused = find_or_open(place, named("refused"))
        await settle()
        assert not refused.done()
        gate.is_open.set()
        await finish(busy)
        with pytest.raises(TooManySessions):
            await asyncio.wait_for(refused, 5)


async def test_a_session_that_is_closed_while_it_loads_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    await store_sessions(machine, DESK)
    async with machine.process() as place:
        gate = delay_opens(monkeypatch)
        loading = find_or_open(place, DESK)
        await settle()
        closing = asyncio.create_task(place.directory.close(DESK))
        await settle()
        assert not closing.done()
        gate.is_open.set()
        assert await asyncio.wait_for(closing, 5)
        await finish(loading)
        assert (place.directory.sessions, await place.directory.use(DESK)) == ([], None)


async def test_a_request_for_a_session_with_a_due_timer_waits_until_the_session_is_loaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    await store_sessions(machine, DESK, named("other"), timer_seconds=60)
    async with machine.process() as place:
        gate = delay_opens(monkeypatch)
        takes: list[SessionKey] = []
        take, take_due = machine.store.take, machine.store.take_due

        async def counted(key: SessionKey) -> StoredSession | None:
            takes.append(key)
            return await take(key)

        async def slowly(now: datetime, most: int) -> Sequence[StoredSession]:
            taken = await take_due(now, most)
            await settle(1)
            return taken

        monkeypatch.setattr(machine.store, "take", counted)
        monkeypatch.setattr(machine.store, "take_due", slowly)
        await machine.clock.advance(61)
        using = [find_or_open(place, key) for key in (named("other"), DESK)]
        await settle()
        gate.is_open.set()
        await finish(*using)
        assert (takes, len(place.directory)) == ([], 2)


async def test_a_store_failure_during_a_load_leaves_the_session_to_the_next_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine = Machine()
    await store_sessions(machine, DESK)
    async with machine.process() as place:
        take = machine.store.take

        async def fail(key: SessionKey) -> StoredSession | None:
            monkeypatch.setattr(machine.store, "take", take)
            raise StoreUnavailable("the disk is gone")

        monkeypatch.setattr(machine.store, "take", fail)
        using = [asyncio.create_task(place.directory.use(DESK)) for _ in range(2)]
        outcomes = await asyncio.wait_for(asyncio.gather(*using, return_exceptions=True), 5)
        assert [type(each).__name__ for each in outcomes] == ["SessionsUnavailable"] * 2
        await machine.clock.advance(1)
        assert await place.directory.use(DESK) is not None


async def test_a_session_that_is_lost_while_it_loads_serves_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine()
    await store_sessions(machine, DESK)
    async with machine.process() as place:

        class Connections(NoConnections):
            async def restore(self, session: Session, stored: Mapping[RecordKey, bytes]) -> None:
                with monkeypatch.context() as patch:
                    patch.setattr(machine.store, "commit_now", lambda commits: [None for _ in commits])
                    session.unsaved.mark(RecordKind.SESSION)
                    await session.unsaved.save()

        place.directory.attach(Connections())
        with pytest.raises(SessionsUnavailable):
            await place.directory.use(DESK)
        assert place.directory.sessions == []
        place.directory.attach(NoConnections())
        session = await place.directory.find_or_open(DESK)
        assert not session.is_lost
