"""Connections that share a named session: how they come and go, and what stays. Time is the test's."""

import gc
import json

import pytest

from emceepee.server.http.replay import Replay
from emceepee.sessions.directory import KeyKind, SessionKey
from support.callers.http_process import HELLO
from support.fakes.clock import settle
from support.in_process.http_endpoint import Place, a_place, ended

HALF_AN_HOUR, A_DAY, A_SWEEP = 1800, 86_400, 61


async def timers(place: Place, connection: str) -> list[str]:
    return [timer["message"] for timer in (await place.value(connection, "list_timers"))["timers"]]


async def note(place: Place, connection: str, message: str = "mine") -> None:
    await place.value(connection, "set_timer", duration_ms=86_400_000, message=message)


async def quiet(place: Place, connection: str) -> None:
    """Take all events there are, so that whoever awaits activity waits."""
    await place.value(connection, "list_servers")  # connects the server
    await settle()
    await place.value(connection, "list_servers")


def streams_in_memory() -> int:
    """How many connections are still there to be spoken to."""
    gc.collect()
    return sum(isinstance(thing, Replay) for thing in gc.get_objects())


async def end(place: Place, connection: str) -> int:
    return (await place.ask("DELETE", mcp_session_id=connection)).status


async def test_a_name_at_initialize_joins_the_session_of_that_name_with_an_id_of_its_own() -> None:
    async with a_place() as place:
        first, second = await place.join("desk"), await place.join(query="session=desk")
        other, nameless = await place.join("other"), await place.join()
        assert len({first, second, other, nameless}) == 4
        await note(place, first)
        assert [await timers(place, one) for one in (second, other, nameless)] == [["mine"], [], []]
        assert len(place.sessions()) == 3
        assert place.endpoint.directory.find(SessionKey("local", KeyKind.NAME, "desk")) in place.sessions()


async def test_ending_a_connection_leaves_the_named_session_to_the_others_and_to_those_who_come_later() -> None:
    async with a_place() as place:
        first, second = await place.join("desk"), await place.join("desk")
        await note(place, first)
        assert (await end(place, first), await end(place, first)) == (200, 404)
        assert (await place.status(first), await timers(place, second)) == (404, ["mine"])
        assert await end(place, second) == 200
        assert await timers(place, await place.join("desk")) == ["mine"]


async def test_ending_a_connection_without_a_name_ends_its_session() -> None:
    async with a_place() as place:
        assert await end(place, await place.join()) == 200
        assert place.sessions() == []


async def test_a_connection_that_leaves_is_told_nothing_more() -> None:
    """What it subscribed to would else be kept for it as long as the session lives."""
    async with a_place() as place:
        leaving, staying = await place.join("desk"), await place.join("desk")
        for connection in (leaving, staying):
            subscribe = place.message("resources/subscribe", {"uri": "emceepee://events"})
            assert (await place.ask("POST", body=subscribe, mcp_session_id=connection)).status == 200
        assert streams_in_memory() == 2
        await end(place, leaving)
        await place.clock.advance(1)
        assert streams_in_memory() == 1


async def test_ending_a_connection_ends_its_requests_and_streams_and_no_others() -> None:
    async with a_place() as place:
        leaving, staying = await place.join("desk"), await place.join("desk")
        await quiet(place, staying)
        wait = place.call("await_activity", timeout_ms=600_000)
        waits = [await place.start("POST", wait, mcp_session_id=one) for one in (leaving, staying)]
        reads = [await place.start("GET", mcp_session_id=one, accept="text/event-stream") for one in (leaving, staying)]
        await end(place, leaving)
        await settle()
        assert [task.done() for _, task in (*waits, *reads)] == [True, False, True, False]
        assert waits[0][0].error["code"] == -32800
        await end(place, staying)
        assert await ended(*(task for _, task in (*waits, *reads)))
        assert place.sessions()[0].open_streams == 0


@pytest.mark.parametrize("how", ["by its own wish", "to make room"])
async def test_a_call_that_a_leaving_connection_waits_for_goes_on_as_a_task(how: str) -> None:
    async with a_place(connections_per_session=1 if how == "to make room" else 2) as place:
        leaving = await place.join("desk")
        slow = place.call("execute_tool", server="one", tool="slow")
        answered, calling = await place.start("POST", slow, mcp_session_id=leaving)
        if how == "by its own wish":
            await end(place, leaving)
        later = await place.join("desk")
        assert await ended(calling)
        told = json.loads(answered.body)["result"]["structuredContent"]["proxy_task"]
        (task,) = (await place.value(later, "list_tasks"))["tasks"]
        assert (task["taskId"], task["status"]) == (told["task_id"], "working")


async def test_closing_the_session_ends_every_connection_and_answers_who_asked_for_it() -> None:
    async with a_place() as place:
        asking, other = await place.join("desk"), await place.join("desk")
        await quiet(place, asking)
        wait = place.call("await_activity", timeout_ms=600_000)
        own, others = [await place.start("POST", wait, mcp_session_id=one) for one in (asking, other)]
        reading, streaming = await place.start("GET", mcp_session_id=asking, accept="text/event-stream")
        assert await place.value(asking, "close_session", session="desk") == {"closed": "desk"}
        assert await ended(own[1], others[1], streaming)
        assert [answer.error["code"] for answer in (own[0], others[0])] == [-32800, -32800]
        assert reading.is_whole
        assert [await place.status(one) for one in (asking, other)] == [404, 404]
        assert place.sessions() == []
        assert await timers(place, await place.join("desk")) == []


async def test_closing_the_session_one_is_on_is_answered_also_on_a_stream_and_in_a_batch() -> None:
    async with a_place() as place:
        close, joined = place.call("close_session", session="desk"), await place.join("desk")
        answered = await place.ask("POST", body=close, mcp_session_id=joined, accept="text/event-stream")
        assert b'"closed":"desk"' in answered.body
        assert answered.is_whole
        old = place.message("initialize", HELLO | {"protocolVersion": "2025-03-26"})
        opened = await place.ask("POST", body=old, emceepee_session="desk")
        batch = [place.message("ping"), close]
        answered = await place.ask("POST", body=batch, mcp_session_id=opened.headers["mcp-session-id"])
        closed = {reply["id"]: reply for reply in json.loads(answered.body)}[close["id"]]
        assert closed["result"]["structuredContent"] == {"closed": "desk"}


async def test_a_person_who_ends_the_session_ends_its_connections() -> None:
    async with a_place() as place:
        joined = [await place.join("desk") for _ in range(3)]
        (session,) = place.sessions()
        assert await place.endpoint.directory.end(session)
        assert [await place.status(one) for one in joined] == [404] * 3


async def test_an_abandoned_connection_is_forgotten_and_its_session_is_not() -> None:
    async with a_place() as place:
        abandoned, used = await place.join("desk"), await place.join("desk")
        await note(place, abandoned)
        await place.clock.advance(HALF_AN_HOUR - A_SWEEP)
        assert await place.status(used) == 200
        await place.clock.advance(2 * A_SWEEP)
        assert [await place.status(one) for one in (abandoned, used)] == [404, 200]
        assert await timers(place, await place.join("desk")) == ["mine"]


async def test_a_connection_that_waits_or_reads_is_not_abandoned() -> None:
    async with a_place(session_idle_seconds=300) as place:
        reading, waiting = await place.join("desk"), await place.join("desk")
        _, stream = await place.start("GET", mcp_session_id=reading, accept="text/event-stream")
        slow = place.call("execute_tool", server="one", tool="slow", timeout_ms=900_000)
        _, call = await place.start("POST", slow, mcp_session_id=waiting)
        await place.clock.advance(600)
        assert [await place.status(one) for one in (reading, waiting)] == [200, 200]
        await place.value(reading, "close_session", session="desk")
        assert await ended(stream, call)


async def test_a_connection_with_a_session_of_its_own_sleeps_with_it_and_is_kept() -> None:
    async with a_place() as place:
        nameless, _ = await place.join(), await place.join("desk")
        await timers(place, nameless)
        await place.clock.advance(2 * HALF_AN_HOUR)
        assert await place.status(nameless) == 200


async def test_a_named_session_that_is_forgotten_takes_its_connections_along() -> None:
    async with a_place(session_idle_seconds=A_DAY * 2) as place:
        joined = await place.join("desk")
        await place.clock.advance(A_DAY + A_SWEEP)
        assert await place.status(joined) == 404
        assert place.sessions() == []


async def test_of_too_many_connections_the_one_idle_longest_gives_way_but_none_in_use() -> None:
    async with a_place(connections_per_session=3) as place:
        busy = await place.join("desk")
        _, stream = await place.start("GET", mcp_session_id=busy, accept="text/event-stream")
        await place.clock.advance(1)
        older, newer = await place.join("desk"), await place.join("desk")
        await place.clock.advance(1)
        assert await place.status(older) == 200
        await place.clock.advance(1)
        newest = await place.join("desk")
        assert [await place.status(one) for one in (busy, older, newer, newest)] == [200, 200, 404, 200]
        await place.join("elsewhere")
        assert await place.status(older) == 200
        await place.value(busy, "close_session", session="desk")
        assert await ended(stream)


@pytest.mark.parametrize("most", [0, 1])
async def test_if_all_connections_are_in_use_the_oldest_gives_way(most: int) -> None:
    async with a_place(connections_per_session=most) as place:
        busy = await place.join("desk")
        _, stream = await place.start("GET", mcp_session_id=busy, accept="text/event-stream")
        newest = await place.join("desk")
        assert await ended(stream)
        assert [await place.status(one) for one in (busy, newest)] == [404, 200]


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 7}, {"capabilities": []}])
async def test_a_refused_initialize_opens_nothing_and_closes_nothing(params: dict[str, object]) -> None:
    async with a_place() as place:
        bad = place.message("initialize", params)
        for name in ("", "desk"):
            refused = await place.ask("POST", body=bad, emceepee_session=name)
            assert refused.error["code"] == -32602
            assert "mcp-session-id" not in refused.headers
        assert place.sessions() == []
        joined = await place.join("desk")
        await note(place, joined)
        await place.ask("POST", body=bad, emceepee_session="desk")
        assert await timers(place, joined) == ["mine"]


async def test_a_name_that_is_too_long_is_refused() -> None:
    async with a_place() as place:
        refused = await place.ask("POST", body=place.message("initialize", HELLO), emceepee_session="x" * 201)
        assert (refused.status, place.sessions()) == (400, [])
        assert "201 characters, and may have 200" in refused.error["message"]


async def test_another_principal_joins_a_session_of_its_own_and_cannot_use_the_first_ones_connection() -> None:
    async with a_place(tokens={"one": "ada", "two": "ben"}) as place:
        ada, ben = {"authorization": "Bearer one"}, {"authorization": "Bearer two"}
        joined, _ = await place.join("desk", **ada), await place.join("desk", **ben)
        assert [len(place.endpoint.directory.sessions_of(who)) for who in ("ada", "ben")] == [1, 1]
        assert [await place.status(joined, **who) for who in (ada, ben)] == [200, 404]
        assert (await place.ask("DELETE", mcp_session_id=joined, **ben)).status == 404


async def test_only_the_first_who_names_a_session_says_how_its_servers_are_connected() -> None:
    async with a_place() as place:
        await place.join("lazy", emceepee_connect="on-use")
        await place.join("lazy")
        await place.join("eager")
        await place.join("eager", emceepee_connect="on-use")
        assert [session.connects_on_use for session in place.sessions()] == [True, False]
