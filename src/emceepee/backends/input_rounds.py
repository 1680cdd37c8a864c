"""Questions in the result of a call: a 2026-07-28 backend asks this way, and the call is sent again with the answers.

request ──▶ backend
        ◀── resultType "input_required", inputRequests, requestState
    each question goes up through the Listener, like one of a handshake-era backend
request with inputResponses and requestState ──▶ backend
        ◀── the final result, or more questions
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection

from emceepee.backends.link import Listener, RpcError, ServerLost
from emceepee.clock import Clock
from emceepee.errors import BackendDisconnected, ExecutionFailed
from emceepee.lifecycle import TaskOwner
from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject, JsonValue
from emceepee.wire.protocol import METHOD_NOT_FOUND

QUESTION_ROUNDS = 50  # per call
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 0.25  # seconds, between rounds that only ask to try again

INPUT_REQUIRED = "input_required"  # the result type
SendAgain = Callable[[JsonObject], Awaitable[JsonObject]]


def wants_input(result: JsonObject) -> bool:
    return result.get("resultType") == INPUT_REQUIRED


class InputRounds:
    """Repeats a call that asks for input until it has its final result."""

    def __init__(self, server: str, listener: Listener, clock: Clock, limits: Limits) -> None:
        self._server, self._listener, self._clock, self._limits = server, listener, clock, limits

    async def finish(
        self, result: JsonObject, params: JsonObject, send: SendAgain, origin: object | None
    ) -> JsonObject:
        """Send `params` again with answers to the questions in `result`, until a result has no more questions.

        Raises:
            ExecutionFailed: a question got no answer, or there were too many rounds.
            BackendDisconnected: the backend was lost while it waited for an answer.
        """
        pause = FIRST_PAUSE
        for _ in range(QUESTION_ROUNDS):
            following = dict(params)
            if "requestState" in result:
                following["requestState"] = result["requestState"]
            questions = result.get("inputRequests")
            if isinstance(questions, dict) and questions:
                following["inputResponses"] = await self._ask_all(questions, origin)
            else:
                await self._clock.sleep(pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            result = await send(following)
            if not wants_input(result):
                return result
        raise ExecutionFailed(
            f'Server "{self._server}" still requested input after {QUESTION_ROUNDS} rounds; the call was aborted.'
        )

    async def _ask_all(self, questions: JsonObject, origin: object | None) -> JsonObject:
        """Ask all questions of a round at once. If one cannot be answered, withdraw the others and fail the call."""
        owner = TaskOwner("input requests")
        try:
            asking = {key: owner.spawn(self._try(item, origin)) for key, item in questions.items()}
            refusal = await _first_refusal(asking.values())
        finally:
            await owner.close()
        if isinstance(refusal, ServerLost):
            raise BackendDisconnected(f'Server "{self._server}" was lost while it waited for an answer.') from refusal
        if refusal is not None:
            raise ExecutionFailed(
                f'Server "{self._server}" asked a question that got no answer: {refusal}'
            ) from refusal
        return {key: task.result() for key, task in asking.items()}

    async def _try(self, question: JsonValue, origin: object | None) -> JsonObject | RpcError:
        """Return a refusal as a value. Raised in a task group, it would keep the whole call in a reference cycle."""
        try:
            return await self._ask(question, origin)
        except RpcError as refusal:
            return refusal

    async def _ask(self, question: JsonValue, origin: object | None) -> JsonObject:
        request = question if isinstance(question, dict) else {}
        method, params = str(request.get("method")), request.get("params")
        try:
            return await self._listener.handle_request(
                method,
                params if isinstance(params, dict) else {},
                origin,
                seconds=self._limits.modern_question_seconds,
            )
        except RpcError as refusal:
            if method != "roots/list" or refusal.code != METHOD_NOT_FOUND:
                raise
            return {"roots": []}  # a round cannot reject a single request, and the call does not need the roots


async def _first_refusal(asking: "Collection[asyncio.Task[JsonObject | RpcError]]") -> RpcError | None:
    """Return the first refusal, or None once all questions are answered."""
    waiting = set(asking)
    while waiting:
        done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            if isinstance(outcome := task.result(), RpcError):
                return outcome
    return None
