"""Any replica accepts any request: the holder of its session serves it, and each caller is answered."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from emceepee.guard.caller_identity import CallerIdentity
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.request_forwarder import ForwardOutcome, LostReply
from emceepee.server.http.request_router import SLACK_SECONDS
from emceepee.server.stop_signals import FINISH_SECONDS, LET_GO_SECONDS, PASSED_ON_SECONDS
from emceepee.sessions.directory.directory import LAST_ANSWERS_SECONDS
from emceepee.sessions.session import Session
from emceepee.state.replica import Replica
from support.fakes.clock import settle
from support.in_process.asgi_messages import Answered
from support.in_process.http_endpoint import EndpointClient, an_endpoint_of
from support.sessions.replicas import Replicas
from support.sessions.replies import without_help

LEASE = 5.0
PINNED = {"emceepee_session": "desk"}


class Wires:
    """The network between the replicas: a forwarded request is served at once, unless the test delays it."""

    def __init__(self) -> None:
        self.clients: list[EndpointClient] = []
        self.hops: list[int] = []
        self.outcome: ForwardOutcome | None = None
        self.held: asyncio.Future[None] | None = None  # an answer of another replica that the test holds back
        self.passing = 0

    @property
    def is_passing(self) -> bool:
        return self.passing > 0

    def end_streams(self) -> None: ...

    def break_off(self) -> None:
        if self.held is not None and not self.held.done():
            self.held.set_exception(ConnectionResetError())

    async def forward(
        self, holder: Replica, request: HttpRequest, body: bytes, *, lost_reply: LostReply = lambda: None
    ) -> ForwardOutcome:
        self.hops.append(holder.slot)
        if self.outcome is not None:
            return self.outcome
        if self.held is not None:
            self.passing += 1
            try:
                await self.held
            except ConnectionResetError:
                return ForwardOutcome.LOST
            finally:
                self.passing -= 1
        there = Answered()
        hop = HttpRequest(request.scope, request.headers, request.receive, there.send, request.identity)
        if not await self.clients[holder.slot].endpoint.serve_hop(hop, body):
            return ForwardOutcome.NOT_HELD
        headers = [(name.encode(), text.encode()) for name, text in there.headers.items()]
        await request.send({"type": "http.response.start", "status": there.status, "headers": headers})
        await request.send({"type": "http.response.body", "body": there.body})
        return ForwardOutcome.ANSWERED


def lose(client: EndpointClient, session: Session) -> None:
    """Its replica hears that another one has taken the session over."""
    client.installation.directory._drop_lost(session)


@asynccontextmanager
async def two_replicas(**settings: Any) -> AsyncIterator[tuple[Wires, Replicas, EndpointClient, EndpointClient]]:
    wires, replicas = Wires(), Replicas()
    async with replicas.start(2, **settings) as places, AsyncExitStack() as stack:
        for place in places:
            assert place.placement is not None
            await place.placement.refresh()
            wires.clients.append(await stack.enter_async_context(an_endpoint_of(place, forwarder=wires)))
        yield wires, replicas, wires.clients[0], wires.clients[1]


async def modern(client: EndpointClient, tool: str, arguments: dict[str, Any], **headers: str) -> Any:
    answered, task = await client.start_modern("tools/call", {"name": tool, "arguments": arguments}, **headers)
    await asyncio.wait_for(task, 5)
    assert answered.status == 200, answered.body
    return json.loads(answered.body)["result"]["structuredContent"]


async def test_the_router_forwards_a_call_to_the_replica_that_holds_the_session() -> None:
    async with two_replicas() as (wires, _, first, second):
        connection = await second.join()
        timer = await first.value(connection, "set_timer", duration_ms=60_000, message="tea")
        assert wires.hops == [1]
        assert [each["timerId"] for each in (await second.value(connection, "list_timers"))["timers"]] == [
            timer["timerId"]
        ]
        assert wires.hops == [1], "no hop where the connection leads to the owner"
        assert (await first.ask("DELETE", mcp_session_id=connection)).status == 200
        assert await second.status(connection) == 404
        assert await first.status(connection) == 404


async def test_the_router_joins_a_named_session_at_its_holder() -> None:
    async with two_replicas() as (wires, _, first, second):
        one, other = await second.join("desk"), await first.join("desk")
        assert other.endswith("-01"), "the replica that has the session made the id"
        assert wires.hops == [1]
        assert one != other
        assert (len(first.sessions()), len(second.sessions())) == (0, 1)


async def test_callers_without_a_handshake_find_their_sessions_from_every_replica() -> None:
    async with two_replicas() as (wires, _, first, second):
        handle = (await modern(second, "open_session", {}))["session"]
        ways: list[tuple[dict[str, Any], dict[str, str]]] = [({"session": handle}, {}), ({}, PINNED), ({}, {})]
        for arguments, headers in ways:
            timer = {"duration_ms": 60_000, "message": "tea", **arguments}
            await modern(second, "set_timer", timer, **headers)
            wires.hops.clear()
            assert len((await modern(first, "list_timers", arguments, **headers))["timers"]) == 1
            assert wires.hops == [1]
        assert (await modern(first, "close_session", {"session": handle})) == {"closed": handle}
        assert (await modern(first, "close_session", {"session": "desk"})) == {"closed": "desk"}


async def test_the_router_finds_a_moved_session_in_the_store() -> None:
    async with two_replicas() as (wires, replicas, first, second):
        connection = await second.join()
        await second.value(connection, "set_timer", duration_ms=60_000, message="tea")
        await second.endpoint.directory.close_all()
        wires.outcome = ForwardOutcome.NOT_HELD
        assert len((await first.value(connection, "list_timers"))["timers"]) == 1
        assert wires.hops == [1]
        assert (len(first.sessions()), len(second.sessions())) == (1, 0)
        replicas.stores[1].die()


async def test_a_request_waits_until_the_lease_of_a_dead_replica_expires() -> None:
    async with two_replicas() as (wires, replicas, first, second):
        connection = await second.join()
        await second.value(connection, "set_timer", duration_ms=60_000, message="tea")
        wires.outcome = ForwardOutcome.UNREACHABLE
        answered, task = await first.start("POST", first.call("list_timers"), mcp_session_id=connection)
        for _ in range(20):
            await replicas.clock.advance(0.1)
        assert not task.done()
        replicas.stores[1].die()
        await replicas.clock.advance(1)
        await asyncio.wait_for(task, 5)
        assert len(json.loads(answered.body)["result"]["structuredContent"]["timers"]) == 1


async def test_a_request_does_not_wait_forever_for_an_unreachable_replica() -> None:
    async with two_replicas() as (wires, replicas, first, second):
        connection = await second.join()
        await second.value(connection, "list_timers")
        wires.outcome = ForwardOutcome.UNREACHABLE
        answered, task = await first.start("POST", first.call("list_timers"), mcp_session_id=connection)
        for _ in range(round((2 * LEASE + SLACK_SECONDS) / 0.2) + 5):
            await replicas.clock.advance(0.2)
        await asyncio.wait_for(task, 5)
        assert answered.status == 503
        assert answered.headers["retry-after"] == "2"


@pytest.mark.parametrize("is_modern", [False, True])
async def test_a_caller_that_loses_its_replica_learns_that_the_call_may_have_run(is_modern: bool) -> None:
    async with two_replicas() as (wires, _, first, second):
        call = {"name": "set_timer", "arguments": {"duration_ms": 60_000, "message": "tea"}}
        connection = await second.join("desk")
        wires.outcome = ForwardOutcome.LOST
        if is_modern:
            answered, task = await first.start_modern("tools/call", call, emceepee_session="desk")
            await asyncio.wait_for(task, 5)
        else:
            answered = await first.ask("POST", body=first.message("tools/call", call), mcp_session_id=connection)
        result = json.loads(answered.body)["result"]
        assert (answered.status, result["isError"]) == (200, True)
        assert without_help(result["structuredContent"]["error"])["details"] == {
            "reason": "replica",
            "mayHaveRun": True,
        }
        assert ("resultType" in result) is is_modern
        assert ("io.modelcontextprotocol/serverInfo" in result.get("_meta", {})) is is_modern
        assert wires.hops == [1], "it is not sent again"


async def test_a_listen_request_that_is_lost_with_its_replica_ends_and_its_caller_listens_again() -> None:
    async with two_replicas() as (wires, _, first, second):
        await second.join("desk")
        wires.outcome = ForwardOutcome.LOST
        listen = {"notifications": {"resourceSubscriptions": ["emceepee://events"]}}
        answered, task = await first.start_modern("subscriptions/listen", listen, emceepee_session="desk")
        await asyncio.wait_for(task, 5)
        message = json.loads(answered.body)
        meta = {"io.modelcontextprotocol/subscriptionId": message["id"]}
        assert message["result"] == {"resultType": "complete", "_meta": meta}


async def test_other_lost_requests_get_an_error_and_not_a_503_that_claims_nothing_ran() -> None:
    async with two_replicas() as (wires, _, first, second):
        connection = await second.join()
        wires.outcome = ForwardOutcome.LOST
        answered = await first.ask("POST", body=first.message("tools/list"), mcp_session_id=connection)
        assert answered.error["data"]["details"]["mayHaveRun"]
        assert (await first.ask("GET", accept="text/event-stream", mcp_session_id=connection)).status == 502
        batch = [first.call("set_timer", duration_ms=60_000, message="tea")]
        assert (await first.ask("POST", body=batch, mcp_session_id=connection)).status == 502


async def test_a_forwarded_request_is_not_forwarded_again() -> None:
    async with two_replicas() as (wires, _, first, second):
        connection = await second.join()
        await second.value(connection, "list_timers")
        request, task = await second.start("POST", second.call("list_timers"), mcp_session_id="unknown-07")
        await asyncio.wait_for(task, 5)
        assert request.status == 404
        answered = Answered()
        scope = {"type": "http", "method": "POST", "path": "/mcp", "query_string": b"", "headers": []}
        headers = {b"content-type": b"application/json", b"mcp-session-id": connection.encode()}
        hop = HttpRequest(scope, headers, _nothing, answered.send, CallerIdentity())
        assert not await first.endpoint.serve_hop(hop, json.dumps(first.call("list_timers")).encode())
        assert answered.status == 0
        assert wires.hops == []


async def test_a_stopping_replica_forwards_requests_to_the_replica_that_takes_over_the_session() -> None:
    async with two_replicas() as (wires, _, first, second):
        connection = await second.join()
        await second.value(connection, "set_timer", duration_ms=60_000, message="tea")
        second.endpoint.drain()
        await settle()
        assert len((await second.value(connection, "list_timers"))["timers"]) == 1
        assert wires.hops == [0]
        assert (len(first.sessions()), len(second.sessions())) == (1, 0)


async def test_a_stopping_replica_waits_for_forwarded_requests_and_forwards_no_late_ones() -> None:
    async with two_replicas() as (wires, _, _, second):
        connection = await second.join()
        wires.held = asyncio.get_running_loop().create_future()
        second.endpoint.drain()
        await second.clock.advance(FINISH_SECONDS / 2)
        answered, task = await second.start("POST", second.call("list_timers"), mcp_session_id=connection)
        await second.clock.advance(FINISH_SECONDS / 2)
        late = await second.ask("POST", body=second.call("list_timers"), mcp_session_id=connection)
        assert (late.status, late.headers["retry-after"], wires.hops) == (503, "1", [0])
        await second.clock.advance(LET_GO_SECONDS)
        assert not second.endpoint.is_over
        wires.held.set_result(None)
        await asyncio.wait_for(task, 5)
        assert "result" in json.loads(answered.body)
        assert second.endpoint.is_over


async def test_a_forwarded_request_times_out_with_an_error_that_gives_the_reason() -> None:
    async with two_replicas() as (wires, _, first, second):
        connection = await first.join()
        wires.held = asyncio.get_running_loop().create_future()
        answered, task = await second.start("POST", second.call("list_timers"), mcp_session_id=connection)
        second.endpoint.drain()
        await second.clock.advance(FINISH_SECONDS)
        await second.clock.advance(LET_GO_SECONDS)
        await second.clock.advance(PASSED_ON_SECONDS - 0.1)
        assert not task.done()
        await second.clock.advance(0.1)
        await asyncio.wait_for(task, 5)
        assert second.endpoint.is_over
        error = json.loads(answered.body)["result"]["structuredContent"]["error"]
        assert "This replica of emceepee stopped" in error["message"]
        assert without_help(error)["details"] == {"reason": "replica", "mayHaveRun": True}


async def test_the_last_stopping_replica_answers_with_a_shutdown_error() -> None:
    async with two_replicas() as (wires, replicas, _, second):
        connection = await second.join()
        replicas.stores[0].die()
        assert second.installation.placement is not None
        await second.installation.placement.refresh()
        second.endpoint.drain()
        assert await second.status(connection) == 503
        assert wires.hops == []


async def _nothing() -> dict[str, Any]:
    return {"type": "http.disconnect"}


async def test_a_replica_that_may_have_lost_its_sessions_serves_nothing_until_the_store_confirms_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It was suspended, other replicas may have taken its sessions, and the store is now unavailable."""
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    async with two_replicas() as (_, _, _, second):
        connection = await second.join()
        confirmed: list[bool] = []

        async def confirm() -> None:
            confirmed.append(True)

        storage = second.installation.directory.storage
        for name, value in (("is_sure", False), ("is_in_doubt", True)):
            monkeypatch.setattr(type(storage), name, value)
        monkeypatch.setattr(storage, "confirm", confirm)
        answered = await second.ask("POST", body=ping, mcp_session_id=connection)
        assert (answered.status, confirmed) == (503, [True])
        assert "retry-after" in answered.headers
        monkeypatch.setattr(type(storage), "is_in_doubt", False)
        answered = await second.ask("POST", body=ping, mcp_session_id=connection)
        assert answered.status == 200, "it saw the store go away: nobody can have taken it"


async def test_a_request_for_a_session_that_moved_gets_an_error_that_reports_the_move(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The request is answered before its session closes."""
    async with two_replicas() as (_, _, _, second):
        connection = await second.join()
        [session] = second.sessions()
        saving = asyncio.get_running_loop().create_future()
        monkeypatch.setattr(type(session.unsaved), "save", lambda _: saving)
        call = second.call("set_timer", duration_ms=60_000, message="tea")
        answered, task = await second.start("POST", call, mcp_session_id=connection)
        lose(second, session)
        await settle()
        saving.set_result(None)
        await asyncio.wait_for(task, 5)
        assert json.loads(answered.body)["result"]["structuredContent"]["error"]["details"]["reason"] == "replica"


async def test_a_request_that_runs_while_its_session_moves_to_another_replica_gets_an_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with two_replicas() as (_, _, _, second):
        connection = await second.join()
        [session] = second.sessions()
        monkeypatch.setattr(type(session.unsaved), "save", lambda _: asyncio.get_running_loop().create_future())
        call = second.call("set_timer", duration_ms=60_000, message="tea")
        answered, task = await second.start("POST", call, mcp_session_id=connection)
        lose(second, session)
        await second.clock.advance(LAST_ANSWERS_SECONDS)
        await asyncio.wait_for(task, 5)
        assert "may have run" in json.loads(answered.body)["error"]["message"]


async def test_a_session_that_another_replica_took_over_accepts_no_requests_while_its_last_ones_are_answered() -> None:
    async with two_replicas() as (_, replicas, first, second):
        connection = await second.join()
        [session] = second.sessions()
        assert first.installation.placement is not None
        with replicas.stores[1].paused():
            await first.installation.placement.refresh()
            timer = await first.value(connection, "set_timer", duration_ms=60_000, message="tea")
        lose(second, session)
        timers = (await second.value(connection, "list_timers"))["timers"]
        assert [each["timerId"] for each in timers] == [timer["timerId"]]
        replicas.stores[0].die()
        assert second.installation.placement is not None
        await second.installation.placement.refresh()
        assert (await second.value(connection, "list_timers"))["timers"] == timers, "it is here again"
        assert len(second.sessions()) == 1
        await second.clock.advance(2 * LAST_ANSWERS_SECONDS)
        assert await second.status(connection) == 200
