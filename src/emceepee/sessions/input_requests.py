"""Questions in both eras: asked by a request of the backend's own, or inside the result of a call, which is retried."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from emceepee.backends.link import RpcError
from emceepee.clock import Clock
from emceepee.errors import BackendDisconnected, ExecutionFailed
from emceepee.json_rpc import METHOD_NOT_FOUND, SERVER_ERROR
from emceepee.json_types import JsonObject
from emceepee.sessions.calls import Call, Calls
from emceepee.sessions.questions import QuestionClosed, Questions, TooManyQuestions
from emceepee.state.question import Gone, QuestionKind
from emceepee.telemetry.spans import PhaseKind, phases

REFUSED = -1  # what the protocol's own examples use for "the user said no"
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.25  # between rounds that only say "try again"

_KINDS = {"elicitation/create": QuestionKind.ELICITATION, "sampling/createMessage": QuestionKind.SAMPLING}
Send = Callable[[JsonObject], Awaitable[JsonObject]]


class ServerLost(RpcError):
    """There will be no answer, because nobody is there to get it."""


class InputRequests:
    """Takes a backend's questions to the desk, and the answers back in the era's own way."""

    def __init__(self, desk: Questions, calls: Calls, clock: Clock) -> None:
        self._desk, self._calls, self._clock = desk, calls, clock

    async def answer(
        self,
        server: str,
        method: str,
        params: JsonObject,
        origin: Call | None,
        *,
        roots: list[JsonObject],
        seconds: float,
    ) -> JsonObject:
        """Answer one request of a backend.

        Raises:
            RpcError: there will be no answer.
        """
        if method == "roots/list":
            return {"roots": roots}
        kind = _KINDS.get(method)
        if kind is None:
            raise RpcError({"code": METHOD_NOT_FOUND, "message": f"emceepee does not serve {method}"})
        call_id = None if origin is None else self._calls.identify(origin)
        try:
            question = self._desk.put(server, kind, params, call_id=call_id, seconds=seconds)
        except TooManyQuestions as full:
            words = f"The {kind} request is not put to anyone: {full}. Ask again later."
            raise RpcError({"code": SERVER_ERROR, "message": words}) from None
        asking = [call.span for call in self._calls.asking(server, origin)]
        self._calls.question_asked(server, origin)
        try:
            with phases(PhaseKind.WAITING, server, asking):
                return await self._desk.answer_to(question)
        except QuestionClosed as gone:
            if kind is QuestionKind.ELICITATION and gone.why is not Gone.DISCONNECTED:
                return {"action": "cancel"}
            code = REFUSED if gone.why is Gone.CANCELLED else SERVER_ERROR
            condition = ServerLost if gone.why is Gone.DISCONNECTED else RpcError
            raise condition({"code": code, "message": f"The {kind} request has no answer: {gone}"}) from None

    async def rounds(
        self, call: Call, result: JsonObject, send: Send, *, roots: list[JsonObject], seconds: float, most: int
    ) -> JsonObject:
        """Send a call again with the answers to what its result asks, until it asks for nothing more."""
        pause = FIRST_PAUSE
        for _ in range(most):
            params = dict(call.params)
            if "requestState" in result:
                params["requestState"] = result["requestState"]
            questions = result.get("inputRequests")
            if isinstance(questions, dict) and questions:
                params["inputResponses"] = await self._answers(call, questions, roots=roots, seconds=seconds)
            else:
                await self._clock.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            result = await send(params)
            if result.get("resultType") != "input_required":
                return result
        raise ExecutionFailed(
            f'Server "{call.server}" still asked for more after {most} rounds; the call was given up.'
        )

    async def _answers(
        self, call: Call, questions: JsonObject, *, roots: list[JsonObject], seconds: float
    ) -> JsonObject:
        """All questions of a round at once. If one can have no answer, the others are withdrawn and the call fails."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    key: group.create_task(self._one(call, question, roots=roots, seconds=seconds))
                    for key, question in questions.items()
                }
        except ExceptionGroup as errors:
            first = errors.exceptions[0]
            if isinstance(first, ServerLost):
                raise BackendDisconnected(f'Server "{call.server}" was lost while it waited for an answer.') from first
            raise ExecutionFailed(f'Server "{call.server}" asked something that got no answer: {first}') from first
        return {key: task.result() for key, task in tasks.items()}

    async def _one(self, call: Call, question: Any, *, roots: list[JsonObject], seconds: float) -> JsonObject:
        asked = question if isinstance(question, dict) else {}
        method, params = str(asked.get("method")), asked.get("params")
        params = params if isinstance(params, dict) else {}
        return await self.answer(call.server, method, params, call, roots=roots, seconds=seconds)
