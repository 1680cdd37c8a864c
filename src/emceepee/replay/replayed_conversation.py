"""The recorded server's conversation with one client, in either era."""

from collections.abc import Callable

from emceepee.clock import Clock
from emceepee.miniserver.server_conversation import PROGRESS, Channel, ServerConversation
from emceepee.miniserver.server_hello import ServerHello, can_answer
from emceepee.replay.recording import Notice, RecordedExchange, RecordedQuestions, Recording
from emceepee.replay.replay_script import NotRecorded, ReplayScript
from emceepee.wire.json_rpc import Request, modern_capabilities
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_PARAMS

# Delay before an answer that follows notifications: some clients lose notifications that arrive together with the
# answer.
BREATH_SECONDS = 0.02
STATE_PREFIX = "emceepee-replay"
# These methods have no effect on a recording, so any client may use them.
_ALWAYS_DONE = frozenset({"logging/setLevel", "resources/subscribe", "resources/unsubscribe"})


class ReplayedConversation(ServerConversation):
    """Replays a recording. `says` gets messages for the operator; `is_instant` skips the recorded delays."""

    def __init__(
        self, recording: Recording, clock: Clock, *, is_instant: bool, says: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__(ServerHello(recording.hello), name="replay")
        self._script = ReplayScript(recording)
        self._clock, self._is_instant, self._says = clock, is_instant, says

    def begin(self) -> None:
        self._script.restart()

    async def serve(self, request: Request, channel: Channel) -> None:
        if request.method in _ALWAYS_DONE:
            self.send_result(request, {}, channel)
            return
        try:
            index, done = self._find(request.method, request.params or {})
        except NotRecorded as error:
            self._says(str(error))
            raise
        await self._replay(index, done, request, channel)

    async def _replay(self, index: int, done: int, request: Request, channel: Channel) -> None:
        exchange = self._script.exchange(index)
        for number, step in enumerate(exchange.steps[done:], done + 1):
            await self._wait(step.wait)
            if isinstance(step, Notice):
                self.notify(step.method, step.params, request, channel)
            elif asked := self._answerable(step, self.capabilities_of(request, channel)):
                if modern_capabilities(request.params) is not None:
                    state = f"{STATE_PREFIX}:{index}:{number}"
                    self.send_result(request, _input_required(asked, state), channel)
                    return
                await self.ask(asked, channel)  # the recording continues after any answer
            await channel.drain()
        if self._is_instant and exchange.steps:
            await self._clock.sleep(BREATH_SECONDS)
        await self._wait(exchange.wait)
        self._end(request, exchange, channel)
        if exchange.later:
            self._tasks.spawn(self._go_on(exchange.later, request, channel), name="later")

    def _find(self, method: str, params: JsonObject) -> tuple[int, int]:
        """Return the index of the exchange and the number of its completed steps. Raises: NotRecorded."""
        state = params.get("requestState")
        if state is None:
            return self._script.next(method, params), 0
        prefix, *numbers = str(state)[:100].split(":")
        if prefix == STATE_PREFIX and len(numbers) == 2 and all(each.isdecimal() for each in numbers):
            index, done = map(int, numbers)
            exchange = self._script.resume(index, method, params)
            if exchange is not None and done <= len(exchange.steps):
                return index, done
        raise NotRecorded(INVALID_PARAMS, "requestState does not belong to this replay: send the result's value.")

    def _answerable(self, questions: RecordedQuestions, capabilities: JsonObject) -> dict[str, JsonObject]:
        """Return the questions that the client can answer. Others are skipped, and the call continues as recorded."""
        for question in questions.asked.values():
            if not can_answer(capabilities, question):
                self._says(f"{question['method']} was left out: the client does not say that it can answer it")
        return {key: question for key, question in questions.asked.items() if can_answer(capabilities, question)}

    def _end(self, request: Request, exchange: RecordedExchange, channel: Channel) -> None:
        if exchange.result is not None:
            self.send_result(request, exchange.result, channel)
        else:
            channel.send({"jsonrpc": "2.0", "id": request.request_id, "error": exchange.error or {}})

    async def _go_on(self, notices: list[Notice], request: Request, channel: Channel) -> None:
        for notice in notices:
            await self._wait(notice.wait)
            if notice.method != PROGRESS:  # no progress for a request that has ended
                self.notify(notice.method, notice.params, request, channel)
                await channel.drain()

    async def _wait(self, seconds: float) -> None:
        if not self._is_instant and seconds > 0:
            await self._clock.sleep(seconds)


def _input_required(asked: dict[str, JsonObject], state: str) -> JsonObject:
    return {"resultType": "input_required", "inputRequests": dict(asked), "requestState": state}
