"""A recorded link. Its connection uses it like any link, and the link inside uses it like any listener."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.link import Link, LinkError, Listener, RpcError, ServerFacts
from emceepee.backends.links.wrapped_link import WrappedLink
from emceepee.backends.process.child import without_stderr
from emceepee.backends.recording.entries import LONGEST_TEXT, EntryKind
from emceepee.backends.recording.recorder import Recorder
from emceepee.backends.recording.recording_mask import masked, masked_answer, masked_params, masked_result
from emceepee.state.connection.connection_state import LinkEnd
from emceepee.telemetry.redaction import public_url
from emceepee.wire.json_types import JsonObject

LISTEN, ACKNOWLEDGED = "subscriptions/listen", "notifications/subscriptions/acknowledged"
_PATH_OF_ADDRESS = re.compile(r"(https?://[^/?#\s]+|unix://[^\s:]+:)/\S*")


@dataclass(frozen=True, slots=True)
class _Origin:
    """The recorded request that a message belongs to, and its caller's origin."""

    number: int
    call: object


class RecordedConversation:
    """Records one link's messages. It is the link's `Listener`, in front of the actual one."""

    def __init__(self, recorder: Recorder, listener: Listener) -> None:
        self._recorder, self._listener = recorder, listener
        self.handle_output = listener.handle_output
        self._under_way: dict[int, str] = {}  # our requests in flight, and their methods
        self._open_questions: dict[int | str, str] = {}  # questions that may be answered on a later link

    # Outgoing messages.

    def record_opening(self, link: Link) -> None:
        self._recorder.write(EntryKind.OPENED, lambda: {"server": _introduction(link.facts)})
        link.closed.add_done_callback(lambda closed: self._record_end(closed.result()))

    def _record_end(self, end: LinkEnd) -> None:
        self._recorder.write(EntryKind.CLOSED, lambda: {"reason": _short(end.reason)})

    def begin(self, method: str, params: JsonObject | None) -> int:
        number = next(self._recorder.numbers)
        self._under_way[number] = method
        self._recorder.write(
            EntryKind.REQUEST, lambda: {"id": number, "method": method, "params": masked_params(params)}
        )
        return number

    def end(self, number: int, kind: EntryKind, facts: Callable[[], JsonObject] = dict) -> None:
        self._under_way.pop(number, None)
        self._recorder.write(kind, lambda: {"id": number, **facts()})

    def record_answer(self, message: JsonObject) -> None:
        """Record the answer to a question that `take_request` accepted."""
        number = self._open_questions.pop(message.get("id", ""), None)
        if number is not None:
            self._write_answer(number, message)

    # Incoming messages (`Listener`).

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        number = self._write_question(method, params, origin)
        try:
            answer = await self._listener.handle_request(method, params, _call_of(origin), seconds=seconds)
        except RpcError as refusal:
            self._write_answer(number, {"error": refusal.error})
            raise
        self._write_answer(number, {"result": answer})
        return answer

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        if method != ACKNOWLEDGED:  # a replay sends acknowledgments itself
            self._recorder.write(EntryKind.NOTIFICATION, lambda: self._message(method, params, origin))
        self._listener.handle_notification(method, params, _call_of(origin))

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        task = self._listener.take_request(key, method, params)
        if task is not None:
            self._open_questions[key] = self._write_question(method, params, None)
            task.add_done_callback(lambda _: self._open_questions.pop(key, None))
        return task

    def handle_task(self, task: BackendTask, origin: object | None) -> None:
        self._listener.handle_task(task, _call_of(origin))

    def _write_question(self, method: str, params: JsonObject, origin: object | None) -> str:
        number = f"q{next(self._recorder.questions)}"
        self._recorder.write(EntryKind.QUESTION, lambda: {"id": number, **self._message(method, params, origin)})
        return number

    def _write_answer(self, number: str, answer: JsonObject) -> None:
        self._recorder.write(EntryKind.ANSWER, lambda: {"id": number, **_answer(answer)})

    def _message(self, method: str, params: JsonObject, origin: object | None) -> JsonObject:
        return {"during": self._during(origin), "method": method, "params": masked_params(params)}

    def _during(self, origin: object | None) -> int | None:
        """Return the request that a message belongs to.

        If the transport does not name it, return the newest request in flight.
        """
        if isinstance(origin, _Origin) and self._under_way.get(origin.number) != LISTEN:
            return origin.number
        return next((number for number in reversed(self._under_way) if self._under_way[number] != LISTEN), None)


class RecordedLink(WrappedLink):
    """Wraps an open link."""

    def __init__(self, link: Link, conversation: RecordedConversation) -> None:
        super().__init__(link)
        self._conversation = conversation
        conversation.record_opening(link)

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> JsonObject:
        conversation = self._conversation
        number = conversation.begin(method, params)
        wrapped = None if origin is None else _Origin(number, origin)
        try:
            result = await self._link.request(method, params, origin=wrapped, headers=headers)
        except RpcError as refusal:
            error = refusal.error
            conversation.end(number, EntryKind.ERROR, lambda: {"error": masked(error)})
            raise
        except LinkError as failure:
            reason = str(failure)
            conversation.end(number, EntryKind.FAILED, lambda: {"reason": _short(reason)})
            raise
        except BaseException:
            conversation.end(number, EntryKind.CANCELLED)
            raise
        conversation.end(number, EntryKind.RESULT, lambda: {"result": masked_result(result)})
        return result

    async def send_answer(self, message: JsonObject) -> None:
        await super().send_answer(message)
        self._conversation.record_answer(message)


async def dial_recorded(
    dial: Callable[[Listener], Awaitable[Link]], listener: Listener, recorders: list[Recorder]
) -> Link:
    """Open a link with `dial`, and record it with each recorder. Raises: RpcError, LinkError."""
    if not recorders:
        return await dial(listener)
    conversation = RecordedConversation(recorders[0], listener)
    try:
        link = await dial_recorded(dial, conversation, recorders[1:])
    except (RpcError, LinkError) as error:
        reason = str(error)
        recorders[0].write(EntryKind.FAILED, lambda: {"reason": _short(reason)})
        raise
    return RecordedLink(link, conversation)


def _introduction(facts: ServerFacts) -> JsonObject:
    return {
        "protocolVersion": facts.protocol_version,
        "serverInfo": masked(facts.server_info),
        "capabilities": facts.capabilities,
        "instructions": masked(facts.instructions),
    }


def _answer(answer: JsonObject) -> JsonObject:
    if "result" in answer:
        return {"result": masked_answer(answer["result"])}
    return {"error": answer["error"]} if "error" in answer else {}


def _call_of(origin: object | None) -> object | None:
    return origin.call if isinstance(origin, _Origin) else origin


def _short(text: str) -> str:
    """Shorten a reason and mask secrets. Addresses lose their paths, which may contain tokens."""
    return _PATH_OF_ADDRESS.sub(r"\1/…", public_url(without_stderr(text)))[:LONGEST_TEXT]
