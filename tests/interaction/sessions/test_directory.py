"""Sessions are found, sleep, wake, and are deleted. The test controls the clock."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from emceepee.sessions.directory.open_sessions import TooManySessions
from emceepee.sessions.session import Session
from emceepee.state.connection.connection_state import ConnectionStatus
from emceepee.state.session_key import KeyKind, SessionKey
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.event_delivery import take
from support.sessions.installation import Installation, an_installation
from support.sessions.request_contexts import call_tool
from support.sessions.scene import scripted_spec
from support.sessions.session_connections import NoConnections

HALF_AN_HOUR, A_DAY = 1800, 86_400


async def use(session: Session, tool: str, /, **arguments: Any) -> dict[str, Any]:
    result = await call_tool({"name": tool, "arguments": arguments}, session)
    assert not result.get("isError"), result
    return dict(result["structuredContent"])


async def awake_session(place: Installation) -> tuple[SessionKey, Session]:
    key, session = await place.directory.open("local")
    session.wake()
    await settle()
    assert place.links == 1
    return key, session


async def test_an_idle_session_sleeps_and_wakes_on_use() -> None:
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
                assert await place.directory.use(key) is session
        assert (place.links, session.is_awake) == (1, True)


# Processes of idle sessions.

FIVE_MINUTES = 300
PROCESS = {"one": scripted_spec("one", is_process=True)}


def a_process() -> ScriptedBackend:
    backend = ScriptedBackend(is_process=True)
    backend.answers |= {
        "tools/call": lambda _: {"content": []},
        "resources/subscribe": lambda _: {},
    }
    return backend


async def test_a_stdio_server_of_an_idle_session_stops_after_five_minutes_and_starts_again_on_use() -> None:
    async with an_installation(backend=a_process(), specs=PROCESS, others=1) as place:
        _, session = await awake_session(place)
        await use(session, "set_log_level", server="one", level="warning")
        take(session.activity)
        await place.clock.advance(FIVE_MINUTES - 61)
        assert place.connected == ["one", "other1"]
        await place.clock.advance(122)
        assert (place.connected, session.is_awake) == (["other1"], True)
        [stopped] = take(session.activity).events
        assert (str(stopped.type), set(stopped.data)) == ("process_stopped", {"name", "pid", "reason"})
        await call_tool({"name": "execute_tool", "arguments": {"server": "one", "tool": "echo"}}, session)
        assert place.links == 1
        assert [method for method, _ in place.backend.seen].count("logging/setLevel") == 2
        assert [str(event.type) for event in take(session.activity).events] == []  # the reply told them


@pytest.mark.parametrize("use_of_it", ["a stream", "a question", "a task", "a subscription"])
async def test_a_stdio_server_that_a_session_depends_on_does_not_stop(use_of_it: str) -> None:
    async with an_installation(backend=a_process(), specs=PROCESS) as place:
        _, session = await awake_session(place)
        if use_of_it == "a stream":
            session.open_streams += 1
        elif use_of_it == "a subscription":
            await use(session, "subscribe_resource", server="one", uri="note://a")
        elif use_of_it == "a task":
            del place.backend.answers["tools/call"]
            calling = asyncio.create_task(use(session, "execute_tool", server="one", tool="slow", timeout_ms=0))
            await place.clock.advance(1)
            await calling
        else:
            form = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}
            asking = asyncio.create_task(place.backend.link.listener.handle_request("elicitation/create", form, None))
            await settle()
        await place.clock.advance(FIVE_MINUTES + 61)
        assert place.links == 1
        if use_of_it == "a question":
            asking.cancel()


@pytest.mark.parametrize("setting", ["the limit is 0", "the server has its own idleStop"])
async def test_a_stdio_server_of_an_idle_session_keeps_running_if_so_configured(setting: str) -> None:
    is_limit = setting == "the limit is 0"
    specs = PROCESS if is_limit else {"one": replace(PROCESS["one"], idle_stop=0)}
    seconds = 0 if is_limit else FIVE_MINUTES
    async with an_installation(backend=a_process(), specs=specs, process_idle_seconds=seconds) as place:
        await awake_session(place)
        await place.clock.advance(HALF_AN_HOUR - 61)
        assert place.links == 1


async def test_timers_fire_in_a_sleeping_session() -> None:
    async with an_installation() as place:
        _, session = await awake_session(place)
        await use(session, "set_timer", duration_ms=3_600_000, message="tea")
        await place.clock.advance(HALF_AN_HOUR + 61)
        assert not session.is_awake
        await place.clock.advance(HALF_AN_HOUR)
        events = [event.type for event in take(session.activity).events]
        assert "timer_expired" in [str(event) for event in events]


async def test_a_session_is_deleted_after_a_day_and_its_connection_is_notified() -> None:
    async with an_installation() as place:
        ended: list[Session] = []

        class Connections(NoConnections):
            async def close_all_of(self, session: Session) -> None:
                ended.append(session)

        place.directory.attach(Connections())
        key, session = await awake_session(place)
        await place.clock.advance(A_DAY + 61)
        assert place.directory.find(key) is None
        assert (ended, len(place.directory), place.links) == ([session], 0, 0)


async def test_named_and_default_sessions_open_on_first_use_and_are_found_again() -> None:
    async with an_installation() as place:
        name = SessionKey("ada", KeyKind.NAME, "desk")
        first = await place.directory.find_or_open(name)
        assert await place.directory.find_or_open(name) is first
        others = [SessionKey("bob", KeyKind.NAME, "desk"), SessionKey("ada", KeyKind.DEFAULT)]
        opened = [await place.directory.find_or_open(key) for key in others]
        assert len({id(session) for session in [first, *opened]}) == 3
        assert place.links == 0


async def test_session_handles_are_long_and_random_and_belong_to_the_principal() -> None:
    async with an_installation() as place:
        keys = [(await place.directory.open_handle("ada"))[0] for _ in range(50)]
        assert len({key.value for key in keys}) == 50
        assert all(len(key.value) * 6 >= 128 for key in keys)
        assert place.directory.find(SessionKey("bob", KeyKind.HANDLE, keys[0].value)) is None
        assert place.directory.find(SessionKey("ada", KeyKind.ID, keys[0].value)) is None


async def test_sessions_are_listed_only_for_their_own_principal() -> None:
    async with an_installation() as place:
        (_, first), (_, second), _ = [await place.directory.open(name) for name in ("ada", "ada", "bob")]
        assert place.directory.sessions_of("ada") == [first, second]
        assert place.directory.sessions_of("eve") == []


async def test_a_watcher_is_notified_of_each_opened_and_closed_session_until_it_stops() -> None:
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


async def test_the_holder_of_a_session_can_end_it_once() -> None:
    async with an_installation() as place:
        key, session = await awake_session(place)
        assert await place.directory.end(session)
        assert (place.directory.find(key), place.links) == (None, 0)
        assert not await place.directory.end(session)


async def test_an_interrupted_end_of_a_session_is_completed() -> None:
    """The caller may disconnect, and afterwards no client could find the session to end it again."""
    async with an_installation() as place:
        told = asyncio.Event()

        class Connections(NoConnections):
            async def close_all_of(self, session: Session) -> None:
                told.set()
                await asyncio.get_running_loop().create_future()

        place.directory.attach(Connections())
        key, _ = await awake_session(place)
        closing = asyncio.create_task(place.directory.close(key))
        await asyncio.wait_for(told.wait(), 5)
        closing.cancel()
        await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        assert (place.links, len(place.directory)) == (0, 0)


async def test_an_adopted_session_is_listed_but_manages_its_own_lifetime() -> None:
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


async def test_a_session_of_a_browser_tab_is_deleted_sooner() -> None:
    async with an_installation() as place:
        key, session = await awake_session(place)
        session.update_profile(is_tab=True)
        await place.clock.advance(3600 + 61)
        assert place.directory.find(key) is None


async def test_a_session_that_connects_on_use_is_kept_as_long_as_any_other() -> None:
    async with an_installation() as place:
        named = await place.directory.find_or_open(SessionKey("ada", KeyKind.NAME, "desk"))
        (_, handle) = await place.directory.open_handle("ada")
        for session in (named, handle):
            assert session.profile.connects_on_use
            await use(session, "list_timers")
        await place.clock.advance(A_DAY - 61)
        assert place.directory.sessions_of("ada") == [named, handle]


# Where there are too many.


async def test_a_session_without_calls_is_deleted_after_minutes() -> None:
    async with an_installation() as place:
        unused, _ = await place.directory.open("ada")
        used, session = await place.directory.open("ada")
        await use(session, "list_timers")
        handle, _ = await place.directory.open_handle("ada")
        await place.clock.advance(299)
        assert await place.directory.use(unused) is not None, "and using it is asking for something"
        await place.clock.advance(362)
        found = [place.directory.find(key) is not None for key in (unused, used, handle)]
        assert found == [False, True, True]


async def test_viewing_a_session_does_not_reset_its_idle_time() -> None:
    async with an_installation() as place:
        key, session = await place.directory.open("ada")
        await place.clock.advance(10)
        assert place.directory.find(key) is session
        assert (session.idle_seconds, session.idle_seconds) == (10, 10)
        session.open_streams += 1
        assert session.idle_seconds == 0
        session.open_streams -= 1
        assert session.idle_seconds == 10
        await place.directory.use(key)
        assert session.idle_seconds == 0


async def test_an_open_stream_keeps_a_session_without_calls() -> None:
    async with an_installation() as place:
        key, session = await place.directory.open("ada")
        session.open_streams += 1
        await place.clock.advance(3600)
        session.open_streams -= 1
        assert place.directory.find(key) is session


async def opened_and_used(place: Installation, count: int) -> list[Session]:
    """One after the other, so that the first is idle longest."""
    sessions = []
    for _ in range(count):
        _, session = await place.directory.open("ada")
        await use(session, "list_timers")
        await place.clock.advance(1)
        sessions.append(session)
    return sessions


async def test_the_longest_idle_session_is_evicted_for_a_new_one() -> None:
    async with an_installation(sessions_per_principal=3) as place:
        first, second, third = await opened_and_used(place, 3)
        first.touch()
        _, fourth = await place.directory.open("ada")
        assert place.directory.sessions_of("ada") == [first, third, fourth]
        await settle()
        assert not second.connection("one").is_connected
        assert place.links == 2


async def test_a_session_that_was_never_used_is_evicted_before_a_used_one() -> None:
    async with an_installation(sessions_per_principal=3) as place:
        first, second = await opened_and_used(place, 2)
        await place.directory.open("ada")
        _, third = await place.directory.open("ada")
        assert place.directory.sessions_of("ada") == [first, second, third]


@pytest.mark.parametrize("busy", ["a call", "a waiting tool", "a stream"])
async def test_a_session_in_use_is_never_evicted(busy: str) -> None:
    async with an_installation(sessions_per_principal=1, sessions_in_all=2) as place:
        key, session = await awake_session(place)
        if busy == "a stream":
            session.open_streams += 1
        else:
            tool = {"a call": "execute_tool", "a waiting tool": "await_activity"}[busy]
            take(session.activity)
            given = {"server": "one", "tool": "slow"} if busy == "a call" else {}
            calling = asyncio.create_task(use(session, tool, **given))
            await settle()
        with pytest.raises(TooManySessions, match="You have reached the limit"):
            await place.directory.open("local")
        _, other = await place.directory.open("ada")
        other.open_streams += 1
        with pytest.raises(TooManySessions, match="This server has reached the limit"):
            await place.directory.open("bob")
        assert place.directory.find(key) is session
        if busy != "a stream":
            calling.cancel()
            await asyncio.wait([calling])


async def test_at_the_overall_limit_the_largest_principal_loses_a_session_and_other_principals_keep_theirs() -> None:
    async with an_installation(sessions_per_principal=10, sessions_in_all=10) as place:
        for name, count in (("ada", 7), ("bob", 3)):
            for _ in range(count):
                await place.directory.open(name)
        for _ in range(3):
            await place.directory.open("eve")
        counts = {name: len(place.directory.sessions_of(name)) for name in ("ada", "bob", "eve")}
        assert counts == {"ada": 4, "bob": 3, "eve": 3}
        for _ in range(20):
            await place.directory.open("ada")
        counts = {name: len(place.directory.sessions_of(name)) for name in ("ada", "bob", "eve")}
        assert counts == {"ada": 4, "bob": 3, "eve": 3}
        await settle()
        assert len(place.directory) == 10
