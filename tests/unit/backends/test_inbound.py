import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.backends.inbound import Inbound
from emceepee.backends.link import Failure, LinkError, RpcError
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from support.fake_clock import settle
from support.scripted_listener import ScriptedListener


class Line:
    """An inbound end with a listener, and what it replied."""

    def __init__(self, **answers: JsonObject | Exception) -> None:
        self.replies: list[JsonObject] = []
        self.is_broken = False
        self.tasks = TaskOwner("test")
        self.listener = ScriptedListener(**answers)
        self.inbound = Inbound(self.listener, self.tasks, self._reply)

    async def _reply(self, message: JsonObject) -> None:
        if self.is_broken:
            raise LinkError(Failure.CLOSED, "gone")
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


async def test_a_question_is_answered_under_its_own_id_and_type(line: Line) -> None:
    for key in (7, "7", 0, ""):
        await line.hear(id=key, method="roots/list")
    assert line.replies == [{"jsonrpc": "2.0", "id": key, "result": {"roots": []}} for key in (7, "7", 0, "")]


async def test_a_ping_is_answered_without_asking_anyone(line: Line) -> None:
    await line.hear(id=1, method="ping")
    assert line.replies == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert line.listener.questions == []


async def test_a_refusal_goes_back_whole(line: Line) -> None:
    await line.hear(id=1, method="sampling/createMessage")
    error = {"code": -32601, "message": "no", "data": {"a": 1}}
    assert line.replies == [{"jsonrpc": "2.0", "id": 1, "error": error}]


async def test_a_failure_of_ours_is_answered_and_tells_the_backend_nothing(line: Line) -> None:
    await line.hear(id=1, method="broken")
    assert line.replies == [{"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": "Internal error"}}]


async def test_a_question_carries_its_parameters_and_its_origin(line: Line) -> None:
    await line.hear("the call", id=1, method="roots/list", params={"a": 1})
    await line.hear("the call", id=1, method="roots/list", params=["not", "an", "object"])
    assert line.listener.questions == [("roots/list", {"a": 1}, "the call"), ("roots/list", {}, "the call")]


async def test_a_withdrawn_question_is_cancelled_and_not_answered(line: Line) -> None:
    await line.hear(id=1, method="elicitation/create")
    await line.hear(id="1", method="sampling/other")
    await line.hear(method="notifications/cancelled", params={"requestId": 1})
    assert line.listener.withdrawn == ["elicitation/create"]
    assert line.replies == []


async def test_a_withdrawal_of_something_unknown_is_passed_over(line: Line) -> None:
    unknown: list[Any] = [99, None, [], {}]
    for key in unknown:
        await line.hear(method="notifications/cancelled", params={"requestId": key})
    await line.hear(method="notifications/cancelled")
    assert line.listener.heard == []


async def test_a_notification_goes_to_the_listener_in_order(line: Line) -> None:
    line.inbound.receive({"method": "a", "params": {"n": 1}}, None)
    line.inbound.receive({"method": "b", "id": None}, "origin")
    assert line.listener.heard == [("a", {"n": 1}, None), ("b", {}, "origin")]


async def test_a_slow_question_does_not_delay_another(line: Line) -> None:
    await line.hear(id=1, method="elicitation/create")
    await line.hear(id=2, method="roots/list")
    assert [reply["id"] for reply in line.replies] == [2]


@pytest.mark.parametrize("method", [None, 5, ["x"], {}])
async def test_a_method_that_is_no_text_is_passed_over(line: Line, method: object) -> None:
    await line.hear(id=1, method=method)
    assert (line.replies, line.listener.questions, line.listener.heard) == ([], [], [])


async def test_a_backend_that_is_gone_before_its_answer_is_no_defect(
    line: Line, caplog: pytest.LogCaptureFixture
) -> None:
    line.is_broken = True
    await line.hear(id=1, method="roots/list")
    assert caplog.text == ""
