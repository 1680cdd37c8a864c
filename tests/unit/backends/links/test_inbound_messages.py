import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.backends.links.inbound_messages import InboundMessages
from emceepee.lifecycle import TaskOwner
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import settle

MOST = 3


class Line:
    """The inbound end of a link with a listener, and its replies."""

    def __init__(self, **answers: JsonObject | Exception) -> None:
        self.replies: list[JsonObject] = []
        self.is_broken = False
        self.readable: asyncio.Future[None] | None = None  # set while the backend does not read
        self.tasks = TaskOwner("test")
        self.listener = ScriptedListener(**answers)
        self.inbound = InboundMessages(self.listener, self.tasks, self._reply, most=MOST)

    async def _reply(self, message: JsonObject) -> None:
        if self.is_broken:
            raise LinkError(LinkFailure.CLOSED, "gone")
        if self.readable is not None:
            await self.readable
        self.replies.append(message)

    async def hear(self, origin: object | None = None, /, **message: Any) -> None:
        self.inbound.receive(message, origin)
        await settle()


@pytest.fixture
async def line() -> AsyncIterator[Line]:
    answers: dict[str, JsonObject | Exception] = {
        "roots/list": {"roots": []},
        "sampling/createMessage": RpcError({"code": -32601, "message": "no", "data": {"a": 1}}),
        "broken": ValueError("secret detail"),
    }
    made = Line(**answers)
    yield made
    async with asyncio.timeout(5):
        await made.tasks.close(within=5)


async def test_a_backend_request_is_answered_under_its_own_id_and_id_type(line: Line) -> None:
    for key in (7, "7", 0, ""):
        await line.hear(id=key, method="roots/list")
    assert line.replies == [{"jsonrpc": "2.0", "id": key, "result": {"roots": []}} for key in (7, "7", 0, "")]


async def test_a_ping_from_a_backend_is_answered_without_consulting_the_listener(line: Line) -> None:
    await line.hear(id=1, method="ping")
    assert line.replies == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert line.listener.questions == []


async def test_a_refused_backend_request_is_answered_with_the_full_error(line: Line) -> None:
    await line.hear(id=1, method="sampling/createMessage")
    error = {"code": -32601, "message": "no", "data": {"a": 1}}
    assert line.replies == [{"jsonrpc": "2.0", "id": 1, "error": error}]


async def test_an_internal_error_is_sent_to_the_backend_without_details(line: Line) -> None:
    await line.hear(id=1, method="broken")
    assert line.replies == [{"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Internal error"}}]


async def test_a_backend_request_reaches_the_listener_with_its_parameters_and_origin(line: Line) -> None:
    await line.hear("the call", id=1, method="roots/list", params={"a": 1})
    await line.hear("the call", id=1, method="roots/list", params=["not", "an", "object"])
    assert line.listener.questions == [("roots/list", {"a": 1}, "the call"), ("roots/list", {}, "the call")]


async def test_a_cancelled_backend_request_is_withdrawn_and_not_answered(line: Line) -> None:
    await line.hear(id=1, method="elicitation/create")
    await line.hear(id="1", method="sampling/other")
    await line.hear(method="notifications/cancelled", params={"requestId": 1})
    assert line.listener.withdrawn == ["elicitation/create"]
    assert line.replies == []


async def test_a_cancellation_of_an_unknown_request_is_ignored(line: Line) -> None:
    unknown: list[Any] = [99, None, [], {}]
    for key in unknown:
        await line.hear(method="notifications/cancelled", params={"requestId": key})
    await line.hear(method="notifications/cancelled")
    assert line.listener.heard == []


async def test_notifications_reach_the_listener_in_order(line: Line) -> None:
    line.inbound.receive({"method": "a", "params": {"n": 1}}, None)
    line.inbound.receive({"method": "b", "id": None}, "origin")
    assert line.listener.heard == [("a", {"n": 1}, None), ("b", {}, "origin")]


async def test_a_slow_backend_request_does_not_delay_another(line: Line) -> None:
    await line.hear(id=1, method="elicitation/create")
    await line.hear(id=2, method="roots/list")
    assert [reply["id"] for reply in line.replies] == [2]


@pytest.mark.parametrize("method", [None, 5, ["x"], {}])
async def test_a_message_whose_method_is_not_text_is_ignored(line: Line, method: object) -> None:
    await line.hear(id=1, method=method)
    assert (line.replies, line.listener.questions, line.listener.heard) == ([], [], [])


async def test_a_backend_that_is_gone_before_its_answer_is_sent_logs_no_error(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    line.is_broken = True
    await line.hear(id=1, method="roots/list")
    assert caplog.text == ""


async def test_backend_requests_beyond_the_concurrency_limit_are_refused(line: Line) -> None:
    for number in range(MOST + 2):
        await line.hear(id=number, method="elicitation/create")
    assert len(line.listener.questions) == MOST
    assert [(reply["id"], reply["error"]["code"]) for reply in line.replies] == [(MOST, -32000), (MOST + 1, -32000)]
    await line.hear(method="notifications/cancelled", params={"requestId": 0})
    await line.hear(id=9, method="elicitation/create")
    assert len(line.listener.questions) == MOST + 1


async def test_backend_requests_with_the_same_id_each_count_toward_the_limit(line: Line) -> None:
    for _ in range(MOST + 1):
        await line.hear(id=1, method="elicitation/create")
    assert len(line.listener.questions) == MOST
    assert [reply["id"] for reply in line.replies] == [1]


async def test_reading_pauses_for_a_backend_that_does_not_read_its_answers(line: Line) -> None:
    line.readable = asyncio.get_running_loop().create_future()
    for number in range(2 * MOST):
        assert not line.inbound.is_crowded
        await line.hear(id=number, method="ping")
    assert line.inbound.is_crowded
    assert len(line.tasks) == MOST + 1  # one for all refusals
    waiting = asyncio.ensure_future(line.inbound.wait_for_room())
    await settle()
    assert not waiting.done()
    line.readable.set_result(None)
    async with asyncio.timeout(5):
        await waiting
    await settle()
    assert sorted(reply["id"] for reply in line.replies) == list(range(2 * MOST))
    assert not line.inbound.is_crowded


async def test_a_backend_request_with_an_overlong_id_is_ignored(line: Line) -> None:
    await line.hear(id="x" * 1001, method="ping")
    await line.hear(id="x" * 1000, method="ping")
    assert [len(reply["id"]) for reply in line.replies] == [1000]


async def test_a_backend_request_that_outlives_its_link_is_answered_by_its_receiver_and_can_be_withdrawn(
    line: Line,
) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    taken = line.listener.takes = line.tasks.spawn(wait(), name="taken")
    assert line.inbound.receive({"id": 7, "method": "elicitation/create", "params": {}}, None) is None
    assert (line.listener.questions, line.replies) == ([], [])
    await line.hear(method="notifications/cancelled", params={"requestId": 7})
    assert taken.cancelled()
