"""The request core: a running request is in the table, can be canceled until its response, and always gets one."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from emceepee.server.eras import HandshakeEra
from emceepee.server.events_feed import EventsFeed
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.requests import ENDED, Requests
from emceepee.tools.request_context import NO_CHANNEL, RequestContext
from emceepee.wire.json_rpc import Notification, Request
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.request_contexts import ALL_TOOLS
from support.sessions.scene import Scene, a_scene

HELLO = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}
CANCELLED = {"code": -32800, "message": "Request cancelled"}


class Core:
    """The core of one caller that has initialized."""

    def __init__(self, scene: Scene, *, answers_cancelled: bool) -> None:
        self.scene, self.sent = scene, list[Any]()
        self.requests = Requests("tests", ALL_TOOLS, answers_cancelled=answers_cancelled)
        self.era = HandshakeEra(ProtocolMethods(), EventsFeed(scene.session, NO_CHANNEL.send))

    def context(self, request_id: int | str, method: str = "ping", params: JsonObject | None = None) -> RequestContext:
        return RequestContext(Request(request_id, method, params), self.scene.session)

    def slow(self, request_id: int | str) -> RequestContext:
        """Of a call that waits for the backend."""
        arguments = {"server": "demo", "tool": "slow"}
        return self.context(request_id, "tools/call", {"name": "execute_tool", "arguments": arguments})

    def start(self, context: RequestContext) -> "asyncio.Task[None]":
        return self.requests.start(context, lambda _: self.era, self.sent.append)

    def cancel(self, request_id: object, reason: str = "") -> None:
        self.requests.cancel(Notification("notifications/cancelled", {"requestId": request_id, "reason": reason}))


@asynccontextmanager
async def a_core(*, answers_cancelled: bool = False) -> AsyncIterator[Core]:
    async with a_scene(demo=ScriptedBackend()) as scene:
        core = Core(scene, answers_cancelled=answers_cancelled)
        await core.era.serve(core.context("hello", "initialize", HELLO))
        try:
            yield core
        finally:
            await core.requests.close()


async def test_a_request_is_in_the_request_table_from_its_start_until_its_response() -> None:
    async with a_core() as core:
        assert repr(core.requests) == "<Requests tests running=0>"
        context = core.context(1)
        serving = core.start(context)
        assert repr(core.requests) == "<Requests tests running=1>"
        assert list(core.requests) == [context]
        await asyncio.wait_for(serving, 5)
        assert core.sent == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
        assert repr(core.requests) == "<Requests tests running=0>"
        assert repr(context) == "<RequestContext 1 ping idle>"


async def test_every_failure_becomes_an_error_with_the_id_of_its_request() -> None:
    async with a_core() as core:
        unknown = await core.requests.respond(core.context(4, "no/such"), core.era)
        assert (unknown["id"], unknown["error"]["code"]) == (4, -32601)
        nameless = await core.requests.respond(core.context(5, "tools/call", {}), core.era)
        assert (nameless["id"], nameless["error"]["code"]) == (5, -32602)


async def test_a_request_can_be_canceled_before_its_first_step() -> None:
    async with a_core() as core:
        serving = core.start(core.slow(1))
        core.cancel(1)
        await asyncio.wait({serving}, timeout=5)
        assert core.sent == []
        assert list(core.requests) == []


@pytest.mark.parametrize("answers_cancelled", [False, True])
async def test_only_some_transports_answer_a_canceled_request(answers_cancelled: bool) -> None:
    async with a_core(answers_cancelled=answers_cancelled) as core:
        context = core.slow(1)
        serving = core.start(context)
        asked = await core.scene.backends["demo"].next_asked()
        core.cancel(1)
        await asyncio.wait_for(serving, 5)
        assert core.sent == ([{"jsonrpc": "2.0", "id": 1, "error": CANCELLED}] if answers_cancelled else [])
        assert repr(context).startswith("<RequestContext 1 tools/call cancelled <Call demo slow")
        await settle()
        assert core.scene.backends["demo"].cancelled == [asked]


async def test_a_client_timeout_ends_the_request_and_its_call_continues_as_a_task() -> None:
    async with a_core() as core:
        serving = core.start(core.slow(1))
        asked = await core.scene.backends["demo"].next_asked()
        core.cancel(1, "Request timed out")
        await asyncio.wait_for(serving, 5)
        assert core.sent == []
        [task] = core.scene.session.tasks.all()
        asked.reply(content=[])
        await settle()
        assert str(core.scene.session.tasks.get(task.task_id).status) == "completed"


async def test_of_two_requests_with_one_id_the_newer_is_canceled_first_and_both_can_be_ended() -> None:
    async with a_core() as core:
        first, second = core.slow(1), core.slow(1)
        serving = [core.start(first), core.start(second)]
        await settle()
        core.cancel(1)
        await settle()
        assert list(core.requests) == [first]
        assert core.requests.is_served_by(serving[0])
        assert not core.requests.is_served_by(serving[1])
        assert core.requests.cancel_all() == [serving[0]]
        await asyncio.wait(serving, timeout=5)
        assert all(task.done() for task in serving)


@pytest.mark.parametrize("request_id", [2, None, [], True, "1"])
async def test_a_cancellation_of_an_unknown_request_has_no_effect(request_id: object) -> None:
    async with a_core() as core:
        serving = core.start(core.slow(1))
        await settle()
        core.cancel(request_id)
        await settle()
        assert not serving.done()


async def test_ending_a_session_cancels_all_other_requests() -> None:
    async with a_core() as core:
        asking, other = core.start(core.slow(1)), core.start(core.slow(2))
        await settle()
        assert core.requests.cancel_all(but=asking) == [other]
        await asyncio.wait({other}, timeout=5)
        assert not asking.done()


async def test_a_caller_that_still_waits_learns_why_its_request_has_no_answer() -> None:
    async with a_core(answers_cancelled=True) as core:
        core.start(core.slow(1))
        core.start(core.slow(2))
        await settle()
        core.cancel(1)
        await asyncio.wait(core.requests.cancel_all(), timeout=5)
        words = {message["id"]: message["error"]["message"] for message in core.sent}
        assert words == {1: "Request cancelled", 2: ENDED}


async def test_a_batch_is_answered_at_once_with_errors_first_and_without_canceled_requests() -> None:
    async with a_core() as core:

        def accept(request: Request) -> RequestContext | JsonObject:
            if request.method == "refused":
                return {"refused": request.request_id}
            return RequestContext(request, core.scene.session)

        slow = {"name": "execute_tool", "arguments": {"server": "demo", "tool": "slow"}}
        values: list[Any] = [
            {"jsonrpc": "2.0", "id": 1, "method": "ping"},
            {"jsonrpc": "2.0", "id": 2, "method": "refused"},
            {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": slow},
            {"jsonrpc": "2.0", "id": 9, "result": {}},
            {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}},
            7,
        ]
        replies = await asyncio.wait_for(core.requests.respond_to_batch(values, core.era, accept), 5)
        assert [reply.get("refused", reply.get("id")) for reply in replies] == [2, None, 1]


async def test_a_batch_is_rejected_if_it_is_too_long_or_the_version_has_no_batches() -> None:
    async with a_core() as core:
        assert core.requests.batch_refusal([1], core.era, 1) is None
        assert core.requests.batch_refusal([], core.era, 1) == "Invalid request: a batch is not accepted here"
        assert core.requests.batch_refusal([1], None, 1) == "Invalid request: a batch is not accepted here"
        too_long = "Invalid request: the batch has 2 messages, but the limit is 1"
        assert core.requests.batch_refusal([1, 2], core.era, 1) == too_long
