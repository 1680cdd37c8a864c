"""Connections that share a named session: they open and close, and the session stays. The test controls the clock."""

import gc
import json

import pytest

from emceepee.server.http.replay.replay import Replay
from emceepee.state.session_key import KeyKind, SessionKey
from support.callers.http_process import HELLO
from support.fakes.clock import settle
from support.in_process.http_endpoint import EndpointClient, an_endpoint_client, ended

HALF_AN_HOUR, A_DAY, A_SWEEP = 1800, 86_400, 61


async def timers(client: EndpointClient, connection: str) -> list[str]:
    return [timer["message"] for timer in (await client.value(connection, "list_timers"))["timers"]]


async def note(client: EndpointClient, connection: str, message: str = "mine") -> None:
    await client.value(connection, "set_timer", duration_ms=86_400_000, message=message)


async def quiet(client: EndpointClient, connection: str) -> None:
    """Deliver all current events, so that a call of await_activity waits."""
    await client.value(connection, "list_servers")  # connects the server
    await settle()
    await client.value(connection, "list_servers")


def streams_in_memory() -> int:
    """How many connections are still there to be spoken to."""
    gc.collect()
    return sum(isinstance(thing, Replay) for thing in gc.get_objects())


async def end(client: EndpointClient, connection: str) -> int:
    return (await client.ask("DELETE", mcp_session_id=connection)).status


async def test_initialize_with_a_session_name_joins_that_session_under_a_new_connection_id() -> None:
    async with an_endpoint_client() as client:
        first, second = await client.join("desk"), await client.join(query="session=desk")
        other, nameless = await client.join("other"), await client.join()
        assert len({first, second, other, nameless}) == 4
        await note(client, first)
        assert [await timers(client, one) for one in (second, other, nameless)] == [["mine"], [], []]
        assert len(client.sessions()) == 3
        assert client.endpoint.directory.find(SessionKey("local", KeyKind.NAME, "desk")) in client.sessions()


async def test_ending_a_connection_leaves_its_named_session_to_other_and_later_connections() -> None:
    async with an_endpoint_client() as client:
        first, second = await client.join("desk"), await client.join("desk")
        await note(client, first)
        assert (await end(client, first), await end(client, first)) == (200, 404)
        assert (await client.status(first), await timers(client, second)) == (404, ["mine"])
        assert await end(client, second) == 200
        assert await timers(client, await client.join("desk")) == ["mine"]


async def test_ending_a_connection_without_a_name_ends_its_session() -> None:
    async with an_endpoint_client() as client:
        assert await end(client, await client.join()) == 200
        assert client.sessions() == []


async def test_a_closed_connection_receives_nothing_more() -> None:
    """Otherwise its subscriptions would last as long as the session."""
    async with an_endpoint_client() as client:
        leaving, staying = await client.join("desk"), await client.join("desk")
        for connection in (leaving, staying):
            subscribe = client.message("resources/subscribe", {"uri": "emceepee://events"})
            assert (await client.ask("POST", body=subscribe, mcp_session_id=connection)).status == 200
        assert streams_in_memory() == 2
        await end(client, leaving)
        await client.clock.advance(1)
        assert streams_in_memory() == 1


async def test_ending_a_connection_ends_only_its_own_requests_and_streams() -> None:
    async with an_endpoint_client() as client:
        leaving, staying = await client.join("desk"), await client.join("desk")
        await quiet(client, staying)
        wait = client.call("await_activity", timeout_ms=600_000)
        waits = [await client.start("POST", wait, mcp_session_id=one) for one in (leaving, staying)]
        reads = [
            await client.start("GET", mcp_session_id=one, accept="text/event-stream") for one in (leaving, staying)
        ]
        await end(client, leaving)
        await settle()
        assert [task.done() for _, task in (*waits, *reads)] == [True, False, True, False]
        assert waits[0][0].error["code"] == -32800
        await end(client, staying)
        assert await ended(*(task for _, task in (*waits, *reads)))
        assert client.sessions()[0].open_streams == 0


@pytest.mark.parametrize("how", ["by its own wish", "to make room"])
async def test_a_call_continues_as_a_task_when_its_connection_ends(how: str) -> None:
    async with an_endpoint_client(connections_per_session=1 if how == "to make room" else 2) as client:
        leaving = await client.join("desk")
        slow = client.call("execute_tool", server="one", tool="slow")
        answered, calling = await client.start("POST", slow, mcp_session_id=leaving)
        if how == "by its own wish":
            await end(client, leaving)
        later = await client.join("desk")
        assert await ended(calling)
        told = json.loads(answered.body)["result"]["structuredContent"]["proxy_task"]
        (task,) = (await client.value(later, "list_tasks"))["tasks"]
        assert (task["taskId"], task["status"]) == (told["task_id"], "working")


async def test_closing_a_session_ends_every_connection_and_answers_the_closing_request() -> None:
    async with an_endpoint_client() as client:
        asking, other = await client.join("desk"), await client.join("desk")
        await quiet(client, asking)
        wait = client.call("await_activity", timeout_ms=600_000)
        own, others = [await client.start("POST", wait, mcp_session_id=one) for one in (asking, other)]
        reading, streaming = await client.start("GET", mcp_session_id=asking, accept="text/event-stream")
        assert await client.value(asking, "close_session", session="desk") == {"closed": "desk"}
        assert await ended(own[1], others[1], streaming)
        assert [answer.error["code"] for answer in (own[0], others[0])] == [-32800, -32800]
        assert reading.is_whole
        assert [await client.status(one) for one in (asking, other)] == [404, 404]
        assert client.sessions() == []
        assert await timers(client, await client.join("desk")) == []


async def test_closing_the_current_session_is_answered_on_a_stream_and_in_a_batch() -> None:
    async with an_endpoint_client() as client:
        close, joined = client.call("close_session", session="desk"), await client.join("desk")
        answered = await client.ask("POST", body=close, mcp_session_id=joined, accept="text/event-stream")
        assert b'"closed":"desk"' in answered.body
        assert answered.is_whole
        old = client.message("initialize", HELLO | {"protocolVersion": "2025-03-26"})
        opened = await client.ask("POST", body=old, emceepee_session="desk")
        batch = [client.message("ping"), close]
        answered = await client.ask("POST", body=batch, mcp_session_id=opened.headers["mcp-session-id"])
        closed = {reply["id"]: reply for reply in json.loads(answered.body)}[close["id"]]
        assert closed["result"]["structuredContent"] == {"closed": "desk"}


async def test_ending_a_session_in_the_console_ends_its_connections() -> None:
    async with an_endpoint_client() as client:
        joined = [await client.join("desk") for _ in range(3)]
        (session,) = client.sessions()
        assert await client.endpoint.directory.end(session)
        assert [await client.status(one) for one in joined] == [404] * 3


async def test_an_abandoned_connection_is_dropped_and_its_session_stays() -> None:
    async with an_endpoint_client() as client:
        abandoned, used = await client.join("desk"), await client.join("desk")
        await note(client, abandoned)
        await client.clock.advance(HALF_AN_HOUR - A_SWEEP)
        assert await client.status(used) == 200
        await client.clock.advance(2 * A_SWEEP)
        assert [await client.status(one) for one in (abandoned, used)] == [404, 200]
        assert await timers(client, await client.join("desk")) == ["mine"]


async def test_a_connection_that_waits_or_reads_is_not_abandoned() -> None:
    async with an_endpoint_client(session_idle_seconds=300) as client:
        reading, waiting = await client.join("desk"), await client.join("desk")
        _, stream = await client.start("GET", mcp_session_id=reading, accept="text/event-stream")
        slow = client.call("execute_tool", server="one", tool="slow", timeout_ms=900_000)
        _, call = await client.start("POST", slow, mcp_session_id=waiting)
        await client.clock.advance(600)
        assert [await client.status(one) for one in (reading, waiting)] == [200, 200]
        await client.value(reading, "close_session", session="desk")
        assert await ended(stream, call)


async def test_a_connection_with_its_own_session_sleeps_with_it_and_is_kept() -> None:
    async with an_endpoint_client() as client:
        nameless, _ = await client.join(), await client.join("desk")
        await timers(client, nameless)
        await client.clock.advance(2 * HALF_AN_HOUR)
        assert await client.status(nameless) == 200


async def test_deleting_a_named_session_deletes_its_connections() -> None:
    async with an_endpoint_client(session_idle_seconds=A_DAY * 2) as client:
        joined = await client.join("desk")
        await client.clock.advance(A_DAY + A_SWEEP)
        assert await client.status(joined) == 404
        assert client.sessions() == []


async def test_over_the_connection_limit_the_longest_idle_connection_is_dropped_but_none_in_use() -> None:
    async with an_endpoint_client(connections_per_session=3) as client:
        busy = await client.join("desk")
        _, stream = await client.start("GET", mcp_session_id=busy, accept="text/event-stream")
        await client.clock.advance(1)
        older, newer = await client.join("desk"), await client.join("desk")
        await client.clock.advance(1)
        assert await client.status(older) == 200
        await client.clock.advance(1)
        newest = await client.join("desk")
        assert [await client.status(one) for one in (busy, older, newer, newest)] == [200, 200, 404, 200]
        await client.join("elsewhere")
        assert await client.status(older) == 200
        await client.value(busy, "close_session", session="desk")
        assert await ended(stream)


@pytest.mark.parametrize("most", [0, 1])
async def test_if_all_connections_are_in_use_the_oldest_is_dropped(most: int) -> None:
    async with an_endpoint_client(connections_per_session=most) as client:
        busy = await client.join("desk")
        _, stream = await client.start("GET", mcp_session_id=busy, accept="text/event-stream")
        newest = await client.join("desk")
        assert await ended(stream)
        assert [await client.status(one) for one in (busy, newest)] == [404, 200]


@pytest.mark.parametrize("params", [{}, {"protocolVersion": 7}, {"capabilities": []}])
async def test_a_rejected_initialize_opens_nothing_and_closes_nothing(params: dict[str, object]) -> None:
    async with an_endpoint_client() as client:
        bad = client.message("initialize", params)
        for name in ("", "desk"):
            refused = await client.ask("POST", body=bad, emceepee_session=name)
            assert refused.error["code"] == -32602
            assert "mcp-session-id" not in refused.headers
        assert client.sessions() == []
        joined = await client.join("desk")
        await note(client, joined)
        await client.ask("POST", body=bad, emceepee_session="desk")
        assert await timers(client, joined) == ["mine"]


async def test_a_session_name_over_the_length_limit_is_rejected() -> None:
    async with an_endpoint_client() as client:
        refused = await client.ask("POST", body=client.message("initialize", HELLO), emceepee_session="x" * 201)
        assert (refused.status, client.sessions()) == (400, [])
        assert "201 characters, but the limit is 200" in refused.error["message"]


async def test_another_principal_gets_a_separate_session_of_the_same_name_and_cannot_use_foreign_connections() -> None:
    async with an_endpoint_client(tokens={"one": "ada", "two": "ben"}) as client:
        ada, ben = {"authorization": "Bearer one"}, {"authorization": "Bearer two"}
        joined, _ = await client.join("desk", **ada), await client.join("desk", **ben)
        assert [len(client.endpoint.directory.sessions_of(who)) for who in ("ada", "ben")] == [1, 1]
        assert [await client.status(joined, **who) for who in (ada, ben)] == [200, 404]
        assert (await client.ask("DELETE", mcp_session_id=joined, **ben)).status == 404


async def test_only_the_first_initialize_of_a_session_name_decides_how_its_servers_are_connected() -> None:
    async with an_endpoint_client() as client:
        await client.join("lazy", emceepee_connect="on-use")
        await client.join("lazy")
        await client.join("eager")
        await client.join("eager", emceepee_connect="on-use")
        assert [session.profile.connects_on_use for session in client.sessions()] == [True, False]
