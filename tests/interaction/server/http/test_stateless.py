"""Listeners of 2026-07-28, and the session they listen to. Time is the test's."""

import asyncio
import json

import pytest

from emceepee.sessions.directory import KeyKind, SessionKey
from support.in_process.asgi_messages import Answered
from support.in_process.http_endpoint import Place, a_place, ended

LISTEN = {"notifications": {"resourceSubscriptions": ["emceepee://events"]}}
HALF_AN_HOUR = 1800


async def a_listener(place: Place, **headers: str) -> tuple[Answered, "asyncio.Task[None]"]:
    answered, task = await place.start_modern("subscriptions/listen", LISTEN, **headers)
    assert not task.done(), answered.body
    return answered, task


@pytest.mark.parametrize("name", ["", "desk"])
async def test_a_session_that_is_listened_to_does_not_sleep(name: str) -> None:
    async with a_place() as place:
        _, listening = await a_listener(place, emceepee_session=name)
        (session,) = place.sessions()
        session.wake()
        await place.clock.advance(2 * HALF_AN_HOUR)
        assert (session.is_awake, session.open_streams) == (True, 1)
        await place.endpoint.directory.end(session)
        assert await ended(listening)
        assert session.open_streams == 0


async def test_a_listener_is_let_go_when_its_session_ends_and_others_are_not() -> None:
    async with a_place() as place:
        told, ending = await a_listener(place, emceepee_session="ending")
        _, staying = await a_listener(place, emceepee_session="staying")
        assert await place.endpoint.directory.close(SessionKey("local", KeyKind.NAME, "ending"))
        assert await ended(ending)
        last = json.loads(told.body.decode().split("data: ")[-1])
        assert (told.is_whole, last["error"]["code"], staying.done()) == (True, -32800, False)
        staying.cancel()
        assert await ended(staying)


async def test_who_calls_and_who_listens_without_a_name_are_in_one_session() -> None:
    async with a_place() as place:
        _, listening = await a_listener(place)
        called, calling = await place.start_modern("tools/call", {"name": "list_timers", "arguments": {}})
        await calling
        assert json.loads(called.body)["result"]["structuredContent"] == {"timers": []}
        assert len(place.sessions()) == 1
        listening.cancel()
        assert await ended(listening)


async def test_a_listener_shows_in_the_journal_of_its_session_until_it_leaves() -> None:
    async with a_place() as place:
        _, listening = await a_listener(place)
        (session,) = place.sessions()
        (span,) = session.journal.since(0)
        assert repr(span) == "<Span protocol subscriptions/listen pending>"
        listening.cancel()
        assert await ended(listening)
        assert repr(span) == "<Span protocol subscriptions/listen cancelled>"
