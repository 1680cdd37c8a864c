"""Sessions are found, sleep, wake and are forgotten; time is the test's."""

import asyncio
from typing import Any

import pytest

from emceepee.server.dispatch import call_tool
from emceepee.sessions.directory import KeyKind, SessionKey, TooManySessions
from emceepee.sessions.session import Session
from emceepee.state.connection import ConnectionStatus
from emceepee.tools.declaration import Caller
from support.fake_clock import settle
from support.installation import Installation, an_installation
from support.taking import take

HALF_AN_HOUR, A_DAY = 1800, 86_400


async def use(session: Session, tool: str, /, **arguments: Any) -> dict[str, Any]:
    result = await call_tool({"name": tool, "arguments": arguments}, session, Caller())
    assert not result.get("isError"), result
    return dict(result["structuredContent"])


async def awake_session(place: Installation) -> tuple[SessionKey, Session]:
    key, session = await place.directory.open("local")
    session.wake()
    await settle()
    assert place.links == 1
    return key, session


async def test_an_idle_session_sleeps_and_wakes_when_it_is_used() -> None:
    async with an_installation() as place:
        key, session = await awake_session(place)
        await place.clock.advance(HALF_AN_HOUR - 61)
        assert place.links == 1
        await place.clock.advance(122)
        assert (place.links, session.is_awake) == (0, False)
        assert session.connection("one").state.status is ConnectionStatus.NOT_CONNECTED
        found = place.directory.find(key)
        assert found is session
        await use(session, "list_tools")
        assert place.links == 1


@pytest.mark.parametrize("busy", ["a request", "a call", "a stream"])
async def test_a_session_in_use_does_not_sleep(busy: str) -> None:
    async with an_installation(task_ttl_seconds=1800) as place:
        key, session = await awake_session(place)
        if busy == "a call":
            calling = asyncio.create_task(use(session, "execute_tool", server="one", tool="slow", timeout_ms=0))
            await place.clock.advance(1)
            assert "proxy_task" in await calling
        if busy == "a stream":
            session.open_streams += 1
        for _ in range(4):
            await place.clock.advance(HALF_AN_HOUR / 3)
            if busy == "a request":
                assert place.directory.find(key) is session
        assert (place.links, session.is_awake) == (1, True)


async def test_timers_fire_in_a_sleeping_session() -> None:
    async with an_installation() as place:
        _, session = await awake_session(place)
        await use(session, "set_timer", duration_ms=3_600_000, message="tea")
        await place.clock.advance(HALF_AN_HOUR + 61)
        assert not session.is_awake
        await place.clock.advance(HALF_AN_HOUR)
        events = [event.type for event in take(session.activity).events]
        assert "timer_expired" in [str(event) for event in events]


async def test_a_session_is_forgotten_after_a_day_and_whoever_holds_its_line_is_told() -> None:
    async with an_installation() as place:
        ended: list[Session] = []

        async def note(session: Session) -> None:
            ended.append(session)

        place.directory.on_end = note
        key, session = await awake_session(place)
        await place.clock.advance(A_DAY + 61)
        assert place.directory.find(key) is None
        assert (ended, len(place.directory), place.links) == ([session], 0, 0)


async def test_names_and_principals_open_on_first_use_and_are_found_again() -> None:
    async with an_installation() as place:
        name = SessionKey("ada", KeyKind.NAME, "desk")
        first = await place.directory.find_or_open(name)
        assert await place.directory.find_or_open(name) is first
        others = [SessionKey("bob", KeyKind.NAME, "desk"), SessionKey("ada", KeyKind.DEFAULT)]
        opened = [await place.directory.find_or_open(key) for key in others]
        assert len({id(session) for session in [first, *opened]}) == 3
        assert place.links == 0


async def test_handles_are_long_random_and_the_principals_own() -> None:
    async with an_installation() as place:
        keys = [(await place.directory.open_handle("ada"))[0] for _ in range(50)]
        assert len({key.value for key in keys}) == 50
        assert all(len(key.value) * 6 >= 128 for key in keys)
        assert place.directory.find(SessionKey("bob", KeyKind.HANDLE, keys[0].value)) is None
        assert place.directory.find(SessionKey("ada", KeyKind.ID, keys[0].value)) is None


async def test_limits_hold_for_each_principal_and_for_all() -> None:
    async with an_installation(sessions_per_principal=2, sessions_in_all=3) as place:
        first, _ = await place.directory.open("ada")
        await place.directory.open("ada")
        with pytest.raises(TooManySessions, match="as you may"):
            await place.directory.open("ada")
        await place.directory.open("bob")
        with pytest.raises(TooManySessions, match="as it may"):
            await place.directory.open("eve")
        assert await place.directory.close(first)
        assert not await place.directory.close(first)
        await place.directory.open("eve")


async def test_sessions_are_listed_for_their_principal_alone() -> None:
    async with an_installation() as place:
        (_, first), (_, second), _ = [await place.directory.open(name) for name in ("ada", "ada", "bob")]
        assert place.directory.sessions_of("ada") == [first, second]
        assert place.directory.sessions_of("eve") == []


async def test_whoever_watches_is_told_of_each_session_that_comes_and_goes_until_it_looks_away() -> None:
    async with an_installation() as place:
        seen: list[tuple[Session, bool]] = []

        def look(session: Session) -> None:
            seen.append((session, session in place.directory.sessions_of("ada")))

        place.directory.watch(look)
        key, session = await place.directory.open("ada")
        await place.directory.close(key)
        assert seen == [(session, True), (session, False)]
        place.directory.unwatch(look)
        place.directory.unwatch(look)
        await place.directory.open("ada")
        assert len(seen) == 2


async def test_a_session_can_be_ended_by_whoever_holds_it_once() -> None:
    async with an_installation() as place:
        key, session = await awake_session(place)
        assert await place.directory.end(session)
        assert (place.directory.find(key), place.links) == (None, 0)
        assert not await place.directory.end(session)


async def test_a_session_whose_end_is_interrupted_is_ended_all_the_same() -> None:
    """Who asked for it may hang up meanwhile, and nobody could find the session to end it again."""
    async with an_installation() as place:
        told = asyncio.Event()

        async def hold(session: Session) -> None:
            told.set()
            await asyncio.get_running_loop().create_future()

        place.directory.on_end = hold
        key, _ = await awake_session(place)
        closing = asyncio.create_task(place.directory.close(key))
        await asyncio.wait_for(told.wait(), 5)
        closing.cancel()
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert (place.links, len(place.directory)) == (0, 0)


async def test_an_adopted_session_is_listed_but_lives_its_own_life() -> None:
    async with an_installation() as place, an_installation() as home:
        _, session = await awake_session(home)
        seen: list[Session] = []
        place.directory.watch(seen.append)
        place.directory.adopt(session)
        await place.directory.open("local")
        await place.clock.advance(A_DAY + 61)
        assert place.directory.sessions_of("local") == [session]
        assert not await place.directory.end(session)
        await place.directory.close_all()
        assert home.links == 1
        place.directory.release(session)
        place.directory.release(session)
        assert place.directory.sessions_of("local") == []
        assert seen.count(session) == 2


async def test_a_session_of_a_browser_tab_is_forgotten_sooner() -> None:
    async with an_installation() as place:
        key, session = await place.directory.open("local")
        session.connects_on_use = True
        await place.clock.advance(3600 + 61)
        assert place.directory.find(key) is None
