"""Receive the messages of one backend for its session: answer requests, and record notifications and output."""

import asyncio
from typing import Protocol

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.link import RpcError, ServerLost
from emceepee.clock import Clock, iso
from emceepee.sessions.call import Call
from emceepee.sessions.calls import Calls
from emceepee.sessions.events.activity import Activity
from emceepee.sessions.events.buffers import LogSource, ServerBuffers
from emceepee.sessions.questions.question_origins import QuestionOrigins
from emceepee.sessions.questions.questions import QuestionClosed, Questions, TooManyQuestions
from emceepee.state.events import EventType
from emceepee.state.limits import Limits
from emceepee.state.question import Gone, QuestionKind
from emceepee.wire.json_rpc import SERVER_ERROR
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import METHOD_NOT_FOUND

LINK_DONE = "notifications/elicitation/complete"
REFUSED = -1  # the code for a rejection by the user in the protocol's own examples
_KINDS = {"elicitation/create": QuestionKind.ELICITATION, "sampling/createMessage": QuestionKind.SAMPLING}


class ListenerOwner(Protocol):
    """The parts of a session that a listener needs."""

    clock: Clock
    limits: Limits
    activity: Activity
    calls: Calls
    questions: Questions

    def buffers(self, server: str) -> ServerBuffers: ...


class BackendListener:
    """The listener for the links of one connection."""

    __slots__ = ("_roots", "_server", "_session")

    def __init__(self, session: ListenerOwner, server: str, roots: tuple[str, ...]) -> None:
        """`roots` are the URIs that were declared to the backend."""
        self._session, self._server, self._roots = session, server, roots

    async def handle_request(
        self, method: str, params: JsonObject, origin: object | None, *, seconds: float | None = None
    ) -> JsonObject:
        """Return roots at once, and pass a question to the caller.

        A question times out after `seconds`, or after the limit for questions.

        Raises:
            RpcError: there will be no answer.
        """
        if method == "roots/list" and self._roots:  # without roots, none were declared
            return {"roots": [{"uri": uri} for uri in self._roots]}
        kind = _KINDS.get(method)
        if kind is None:
            raise RpcError({"code": METHOD_NOT_FOUND, "message": f"emceepee does not serve {method}"})
        call = origin if isinstance(origin, Call) else None
        return await self._ask(
            kind, params, call, self._session.limits.question_seconds if seconds is None else seconds
        )

    async def _ask(self, kind: QuestionKind, params: JsonObject, call: Call | None, seconds: float) -> JsonObject:
        """Ask the caller, and return the answer in protocol form. Raises: RpcError."""
        calls, questions = self._session.calls, self._session.questions
        call_id = None if call is None else calls.identify(call)
        origins = QuestionOrigins(self._server, calls.possible_origins(self._server, call))
        try:
            question = questions.ask(self._server, kind, params, call_id=call_id, seconds=seconds, origins=origins)
        except TooManyQuestions as full:
            words = f"The {kind} request was not passed on: {full}. Ask again later."
            raise RpcError({"code": SERVER_ERROR, "message": words}) from None
        asker = None if questions.native is None else questions.native.ask(question, origins.calls)
        calls.promote_for_question(origins.calls, asked_by=asker)
        try:
            with origins:
                return await questions.wait_for_answer(question)
        except QuestionClosed as gone:
            if kind is QuestionKind.ELICITATION and gone.why is not Gone.DISCONNECTED:
                return {"action": "cancel"}
            code = REFUSED if gone.why is Gone.CANCELLED else SERVER_ERROR
            condition = ServerLost if gone.why is Gone.DISCONNECTED else RpcError
            raise condition({"code": code, "message": f"The {kind} request has no answer: {gone}"}) from None

    def handle_notification(self, method: str, params: JsonObject, origin: object | None) -> None:
        match method:
            case "notifications/progress":
                if isinstance(origin, Call):
                    self._session.calls.report_progress(origin, params)
            case "notifications/message":
                span = origin.span if isinstance(origin, Call) else None
                number = None if span is None else span.number
                self._session.buffers(self._server).add_log_message(params, self._session.clock.now(), number)
            case _:
                self._record_notification(method, params)

    def _record_notification(self, method: str, params: JsonObject) -> None:
        now = self._session.clock.now()
        self._session.buffers(self._server).add_notification(method, params, now)
        if method == LINK_DONE:
            self._session.questions.complete_link(self._server, params.get("elicitationId"))
        data = {"params": params} if params else {}
        self._session.activity.emit(EventType.NOTIFICATION, self._server, method=method, timestamp=iso(now), **data)

    def take_request(self, key: int | str, method: str, params: JsonObject) -> "asyncio.Task[None] | None":
        return None  # the connection handles requests that outlive its links

    def handle_task(self, task: BackendTask, origin: object | None) -> None:
        if isinstance(origin, Call):
            self._session.calls.record_backend_task(origin, task)

    def handle_output(self, line: str, source: str) -> None:
        self._session.buffers(self._server).add_output(line, LogSource(source), self._session.clock.now())
