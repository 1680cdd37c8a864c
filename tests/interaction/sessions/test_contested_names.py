"""Two processes that are not replicas, such as two on standard input, open a session of the same name."""

import asyncio

import pytest

from emceepee.app.stdio_app import HELD_SECONDS, open_when_free
from emceepee.sessions.directory.session_storage import SessionsUnavailable
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.memory_store import MemoryStore
from support.fakes.clock import FakeClock
from support.sessions.installation import an_installation
from support.sessions.request_contexts import call_tool

KEY = SessionKey("local", KeyKind.NAME, "mine")


async def test_two_processes_that_open_a_missing_session_name_do_not_both_create_it() -> None:
    clock, store = FakeClock(), MemoryStore(is_durable=True)
    other = store.another_process()
    async with an_installation(store=other, clock=clock, is_contested=True) as second:
        assert await other.take(KEY) is None, "it looks before the first process has created the session"
        async with an_installation(store=store, clock=clock, is_contested=True) as first:
            session = await first.directory.find_or_open(KEY)
            arguments = {"duration_ms": 3_600_000, "message": "tea"}
            await call_tool({"name": "set_timer", "arguments": arguments}, session, None)
            with pytest.raises(SessionsUnavailable):
                await second.directory.find_or_open(KEY)
        store.die()
        opening = asyncio.ensure_future(open_when_free(second.directory, other, KEY, clock))
        await clock.advance(HELD_SECONDS)
        found = await asyncio.wait_for(opening, 5)
        assert [timer.message for timer in found.timers.all(include_inactive=False)] == ["tea"]
