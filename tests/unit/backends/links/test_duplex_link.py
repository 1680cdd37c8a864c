import asyncio
import gc
import itertools
from collections.abc import AsyncIterator
from typing import Any

import pytest
from mcp_types import CLIENT_CAPABILITIES_META_KEY, PROTOCOL_VERSION_META_KEY

from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.backends.links.duplex_link import DuplexLink
from emceepee.backends.negotiation import Envelopes, envelope
from emceepee.lifecycle import TaskOwner
from emceepee.state.connection.connection_state import LinkEnd, LinkEndKind
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import settle


class Line(DuplexLink):
    """A link whose remote end is the test."""

    def __init__(self) -> None:
        self.sent: list[JsonObject] = []
        self.asking = TaskOwner("test")
        self.listener = ScriptedListener(**{"roots/list": {"roots": []}})
        super().__init__("line", self.listener, most_requests=100)
        self._numbers = itertools.count(1)

    async def _send(self, message: JsonObject) -> None:
        self.sent.append(message)

    async def ask(self, method: str = "m", **options: Any) -> "asyncio.Task[JsonObject]":
        task = self.asking.spawn(self.request(method, **options))
        await settle()
        return task

    def receive(self, message: Any) -> bool:
        return self._handle_message(message)

    def receive_bytes(self, data: bytes) -> None:
        self._receive(data)

    def exit(self, reason: str) -> None:
        self.end(LinkEnd(LinkEndKind.LOST, reason))

    def agree(self, version: str) -> None:
        self._envelopes = Envelopes(version, {})

    async def close(self) -> None:
        await self.asking.close(within=5)
        await self._tasks.close(within=5)


class BrokenLine(Line):
    """A link that ends when a message is sent."""

    async def _send(self, message: JsonObject) -> None:
        self.exit("gone")
        raise LinkError(LinkFailure.CLOSED, "gone", may_have_run=False)


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    made = Line()
    yield made
    async with asyncio.timeout(5):
        await made.close()


def answer(key: Any, **result: Any) -> JsonObject:
    return {"jsonrpc": "2.0", "id": key, "result": result}


async def result_of(task: "asyncio.Task[JsonObject]") -> JsonObject:
    async with asyncio.timeout(5):
        return await task


async def test_each_response_reaches_its_caller_in_any_order(line: Line) -> None:
    first, second = await line.ask("a"), await line.ask("b")
    one, two = (message["id"] for message in line.sent)
    assert line.receive(answer(two, n=2))
    assert line.receive(answer(one, n=1))
    assert [await result_of(first), await result_of(second)] == [{"n": 1}, {"n": 2}]
    assert not line.is_busy


async def test_a_request_without_parameters_or_metadata_has_none_on_the_wire(line: Line) -> None:
    await line.ask("a")
    await line.ask("b", params={"x": 1})
    assert line.sent == [
        {"jsonrpc": "2.0", "id": 1, "method": "a"},
        {"jsonrpc": "2.0", "id": 2, "method": "b", "params": {"x": 1}},
    ]


async def test_a_response_whose_id_arrives_as_text_is_matched(line: Line) -> None:
    asked = await line.ask()
    assert line.receive(answer("1", ok=True))
    assert await result_of(asked) == {"ok": True}


async def test_an_error_response_is_raised_with_all_its_fields(line: Line) -> None:
    asked = await line.ask()
    line.receive({"id": 1, "error": {"code": -5, "message": "no", "data": [1]}})
    with pytest.raises(RpcError, match="no") as caught:
        await result_of(asked)
    assert caught.value.error == {"code": -5, "message": "no", "data": [1]}


@pytest.mark.parametrize("message", [{"id": 1, "result": 5}, {"id": 1, "error": "text"}, {"id": 1, "result": None}])
async def test_an_invalid_response_fails_its_request(line: Line, message: JsonObject) -> None:
    asked = await line.ask()
    assert line.receive(message)
    with pytest.raises(LinkError, match="neither a result object nor an error") as caught:
        await result_of(asked)
    assert caught.value.failure is LinkFailure.PROTOCOL


async def test_a_late_duplicate_or_unknown_response_is_ignored(line: Line) -> None:
    asked = await line.ask()
    for key in (99, "x", None, 1.5):
        assert line.receive(answer(key))
    line.receive(answer(1, n=1))
    line.receive(answer(1, n=2))
    assert await result_of(asked) == {"n": 1}
    assert line.receive(answer(1, n=3))


@pytest.mark.parametrize("key", [[], {}, [1], True, "1" * 5000])
async def test_a_response_with_an_impossible_id_affects_no_request(line: Line, key: Any) -> None:
    asked = await line.ask()
    line.receive(answer(key, n=0))
    line.receive(answer(1, n=1))
    assert await result_of(asked) == {"n": 1}


async def test_a_batch_of_responses_and_notifications_is_processed_message_by_message(line: Line) -> None:
    first, second = await line.ask(), await line.ask()
    assert line.receive([answer(2, n=2), {"method": "note"}, answer(1, n=1)])
    assert [await result_of(first), await result_of(second)] == [{"n": 1}, {"n": 2}]
    assert line.listener.heard == [("note", {}, None)]


async def test_a_batch_with_too_many_messages_is_treated_as_noise(line: Line) -> None:
    assert line.receive([{"method": "note"}] * 1001) is False
    assert line.listener.heard == []


@pytest.mark.parametrize("noise", [[], [[]], "text", 5, None, {}, {"id": 1}, {"result": {}}, [{"method": "x"}, 5]])
async def test_noise_is_distinguished_from_messages(line: Line, noise: Any) -> None:
    assert line.receive(noise) is False


async def test_deeply_nested_lists_are_treated_as_noise(line: Line) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]
    assert line.receive(deep) is False
    while deep:  # unwind it by hand: freeing it at once would recurse too deep as well
        deep = deep.pop()


async def test_progress_is_reported_with_its_call(line: Line) -> None:
    await line.ask(origin="the call")
    assert line.sent == [{"jsonrpc": "2.0", "id": 1, "method": "m", "params": {"_meta": {"progressToken": 1}}}]
    line.receive({"method": "notifications/progress", "params": {"progressToken": 1, "progress": 3}})
    line.receive({"method": "notifications/progress", "params": {"progressToken": 2, "progress": 3}})
    line.receive({"method": "notifications/progress"})
    line.receive({"method": "notifications/message", "params": {"progressToken": 1}})
    assert [origin for _, _, origin in line.listener.heard] == ["the call", None, None, None]


async def test_the_backend_is_notified_of_a_cancelled_request_and_its_response_is_ignored(line: Line) -> None:
    asked = await line.ask("tools/call")
    asked.cancel()
    await settle()
    assert line.sent[1:] == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": {"requestId": 1, "reason": "cancelled by the caller"},
        }
    ]
    assert line.receive(answer(1))
    assert not line.is_busy


@pytest.mark.parametrize("method", ["initialize", "server/discover"])
async def test_a_handshake_is_never_cancelled_on_the_wire(line: Line, method: str) -> None:
    asked = await line.ask(method)
    asked.cancel()
    await settle()
    assert len(line.sent) == 1


async def test_the_end_of_a_link_fails_every_pending_and_later_request(line: Line) -> None:
    waiting = [await line.ask() for _ in range(3)]
    line.exit("it exited")
    line.exit("a second reason")
    for asked in [*waiting, await line.ask()]:
        with pytest.raises(LinkError, match="it exited") as caught:
            await result_of(asked)
        assert caught.value.failure is LinkFailure.CLOSED
    assert not line.is_busy


async def test_a_request_that_was_not_sent_because_the_link_ended_leaves_no_unhandled_error() -> None:
    line = BrokenLine()
    unheard: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, problem: unheard.append(problem))
    with pytest.raises(LinkError, match="gone"):
        await line.request("m")
    gc.collect()
    assert unheard == []
    await line.close()


async def test_no_cancellation_is_sent_after_the_end_of_a_link(line: Line) -> None:
    asked = await line.ask()
    asked.cancel()
    line.exit("it exited")
    await settle()
    assert len(line.sent) == 1


async def test_a_request_from_the_backend_is_answered_on_the_same_link(line: Line) -> None:
    assert line.receive({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})
    await settle()
    assert line.sent == [{"jsonrpc": "2.0", "id": "q", "result": {"roots": []}}]


async def test_every_request_in_the_modern_era_carries_its_envelope(line: Line) -> None:
    line.agree("v")
    await line.ask("a", params={"x": 1, "_meta": {"own": 1, PROTOCOL_VERSION_META_KEY: "mine"}})
    await line.ask("b", meta={"version": "probe"})
    assert [message["params"] for message in line.sent] == [
        {"x": 1, "_meta": {"own": 1} | envelope("v", {})},
        {"_meta": {"version": "probe"}},
    ]


async def test_only_tool_calls_and_task_requests_declare_the_tasks_extension(line: Line) -> None:
    line.agree("v")
    for method in ("tools/call", "tasks/get", "tools/list", "resources/read"):
        await line.ask(method)
    declared = [message["params"]["_meta"][CLIENT_CAPABILITIES_META_KEY] for message in line.sent]
    offer: JsonObject = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    assert declared == [offer, offer, {}, {}]


DIGITS = b"1" * 5000
UNREADABLE_ANSWERS = {
    "a number of too many digits": b'{"jsonrpc":"2.0","id":1,"result":{"n":' + DIGITS + b"}}",
    "a number of too many digits before the id": b'{"jsonrpc":"2.0","result":{"n":' + DIGITS + b'},"id":1}',
    "an error with such a number": b'{"id":"1","error":{"code":-1,"message":"x","data":' + DIGITS + b"}}",
    "nested too deeply": b'{"jsonrpc":"2.0","id":1,"result":{"n":' + b"[" * 300 + b"]" * 300 + b"}}",
    "a line break in a text": b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"one',
    "something behind it": b'{"jsonrpc":"2.0","id":1,"result":{}} done',
    "the id neither first nor last": b'{"jsonrpc":"2.0","result":{"n":' + DIGITS + b'},"id":1,"more":{"a":{}}}',
    "one of a batch": b'[{"method":"note"},{"jsonrpc":"2.0","id":1,"result":{"n":' + DIGITS + b"}}]",
    "neither a result nor an error": b'{"jsonrpc":"2.0","id":1}',
    "a batch of too many": b"[" + b'{"method":"note"},' * 1000 + b'{"jsonrpc":"2.0","id":1,"result":{}}]',
}


@pytest.mark.parametrize("data", UNREADABLE_ANSWERS.values(), ids=UNREADABLE_ANSWERS.keys())
async def test_an_unreadable_response_fails_its_request_at_once(line: Line, data: bytes) -> None:
    asked = await line.ask("tools/call")
    line.receive_bytes(data)
    with pytest.raises(LinkError, match="answer") as caught:
        await result_of(asked)
    assert caught.value.failure is LinkFailure.PROTOCOL


async def test_an_unreadable_response_fails_no_other_request(line: Line) -> None:
    first, second = await line.ask(), await line.ask()
    line.receive_bytes(b'{"jsonrpc":"2.0","id":2,"result":{"id":1,"n":' + DIGITS + b"}}")
    line.receive(answer(1, n=1))
    assert await result_of(first) == {"n": 1}
    with pytest.raises(LinkError, match="more than 4300 digits"):
        await result_of(second)


@pytest.mark.parametrize(
    "noise", [b'{"id": 1, "level": "error", "text', b'{"result": {"id": 7', b'{"method": "note", "params": {"id": 1']
)
async def test_an_unparsable_line_that_is_not_a_response_fails_no_request(line: Line, noise: bytes) -> None:
    asked = await line.ask()
    line.receive_bytes(noise)
    assert line.listener.lines == [(noise.decode(), "stdout")]
    line.receive(answer(1, n=1))
    assert await result_of(asked) == {"n": 1}


@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"n":' + DIGITS + b"}}",
        b'{"method":"roots/list","params":{"n":' + DIGITS + b'},"jsonrpc":"2.0","id":"q"}',
        b'{"jsonrpc":"2.0","id":"q","method":"roots/list","params":{"text":"one',
    ],
)
async def test_an_unreadable_request_from_the_backend_is_answered_with_an_error(line: Line, data: bytes) -> None:
    line.receive_bytes(data)
    await settle()
    (refusal,) = line.sent
    assert (refusal["id"], refusal["error"]["code"]) == ("q", -32700)
