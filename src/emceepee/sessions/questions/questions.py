"""Questions from backends. Each question gets exactly one answer, or one reason why there is none."""

import asyncio
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from emceepee.errors import EmceepeeError, ErrorCode, InvalidArguments
from emceepee.futures import reject, resolve
from emceepee.sessions.asker import Asker
from emceepee.sessions.call import Call
from emceepee.sessions.context import SessionContext
from emceepee.sessions.questions.native_elicitation import NativeElicitation
from emceepee.sessions.questions.question_origins import QuestionOrigins
from emceepee.sessions.records import RecordKind
from emceepee.state.attendance import Attendance
from emceepee.state.form import fill_in
from emceepee.state.question import Gone, Question, QuestionKind
from emceepee.surface import call_to
from emceepee.telemetry.logs import EventLog
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

log = EventLog("questions")
QUESTION_BYTES_PER_SESSION = 32 << 20  # of all open questions
MOST_CLIENTS = 100  # clients per session whose attendance is remembered


class QuestionClosed(Exception):
    """The question was closed without an answer; `why` is the reason."""

    def __init__(self, why: Gone, message: str) -> None:
        super().__init__(message)
        self.why = why


class TooManyQuestions(Exception):
    """A limit leaves no room for another question."""


@dataclass(slots=True, eq=False)
class _Open:
    question: Question
    size: int  # of its parameters, in bytes
    answer: "asyncio.Future[JsonObject]"
    origins: QuestionOrigins | None = None  # None: the question concerns every call of its server, as a login does
    is_awaited: bool = False  # whether the server or a login waits for the answer


class Questions:
    """The open questions of one session."""

    def __init__(self, context: SessionContext) -> None:
        self._activity, self._schedule_by = context.activity, context.schedule_by
        self._notify_change = context.notify_change
        self._clock, self._ids, self._limits = context.clock, context.ids, context.limits
        self._unsaved, self._why_foreign = context.unsaved, context.why_foreign
        self._open: dict[str, _Open] = {}
        self.native: NativeElicitation | None = None  # set once a caller supports native questions
        self._unread: dict[str, float] = {}  # seconds until a client dismissed a question, not reported yet
        self._attendance: dict[object, Attendance] = {}  # of clients of protocol version 2026-07-28

    @property
    def is_any_open(self) -> bool:
        return bool(self._open)

    def open(self, kind: QuestionKind | None = None, server: str | None = None) -> list[Question]:
        """Return the open questions, oldest first."""
        found = (entry.question for entry in self._open.values())
        return [q for q in found if kind in (None, q.kind) and server in (None, q.server)]

    # Origins of questions.

    def is_of_task(self, question: Question, task_id: str) -> bool:
        """Whether the task's call may have asked. A question without a call concerns every task of its server."""
        if question.call_id is not None:
            return question.call_id == task_id
        origins = self._origins(question)
        return origins is None or origins.includes(task_id)

    def is_seen_in(self, question: Question, conversation: object | None) -> bool:
        """Whether the conversation sees the question in full: its calls may have asked it, or the origin is unknown."""
        origins = self._origins(question)
        if conversation is None or origins is None or not origins.conversations:
            return True
        return conversation in origins.conversations

    def is_surely_asking(self, call: Call) -> bool:
        return any(entry.origins is not None and entry.origins.only is call for entry in self._open.values())

    def calls_of(self, question: Question) -> Sequence[Call] | None:
        """Return the calls that may have asked the question, or None if it concerns every call of its server."""
        origins = self._origins(question)
        return None if origins is None else origins.calls

    def rule_out(self, call: Call) -> None:
        """Rule out a call that got its result as the origin of open questions."""
        for entry in self._open.values():
            if entry.origins is not None:
                entry.origins.rule_out(call)

    def _origins(self, question: Question) -> QuestionOrigins | None:
        entry = self._open.get(question.request_id)
        return None if entry is None else entry.origins

    def add_asker(self, asker: Asker) -> None:
        if self.native is None:
            self.native = NativeElicitation(most_links=self._limits.questions_per_session)
        self.native.add(asker)

    # Clients without a person.

    def attendance_of(self, client: object) -> Attendance:
        return self._attendance.get(client, Attendance.UNKNOWN)

    def remember_attendance(self, client: object, known: Attendance) -> None:
        self._attendance.pop(client, None)
        self._attendance[client] = known
        if len(self._attendance) > MOST_CLIENTS:
            del self._attendance[next(iter(self._attendance))]

    def record_unread_dismissal(self, question: Question, seconds: float) -> None:
        """Record that the client dismissed the question before a person can have read it. It stays open."""
        if question.request_id in self._open:
            self._unread[question.request_id] = seconds
            log.info(
                "elicitation_dismissed_unread",
                requestId=question.request_id,
                server=question.server,
                afterMs=round(seconds * 1000),
            )

    def take_unread_dismissals(self, questions: Iterable[Question]) -> dict[str, float]:
        """Return the seconds after which clients dismissed these questions. Each dismissal is returned only once."""
        if not self._unread:
            return {}
        found = [question.request_id for question in questions if question.request_id in self._unread]
        return {request_id: self._unread.pop(request_id) for request_id in found}

    # The backend's side.

    def ask(
        self,
        server: str,
        kind: QuestionKind,
        params: JsonObject,
        *,
        call_id: str | None,
        seconds: float,
        origins: QuestionOrigins | None = None,
    ) -> Question:
        """Open a question. Raises: TooManyQuestions, and then nobody has seen it."""
        size = len(encode(params))
        self._check_room(server, size)
        now = self._clock.now()
        question = Question(
            request_id=self._ids.new(),
            server=server,
            kind=kind,
            params=params,
            created_at=now,
            expires_at=now + timedelta(seconds=seconds),
            call_id=call_id,
            status=kind.first_status,
        )
        data: dict[str, object] = {"requestId": question.request_id, "params": params}
        if call_id is not None:
            data["callId"] = call_id
        # Emit the event first: if that fails, no invisible question must stay open.
        self._activity.emit(kind.asked_event, server, **data)
        self._open[question.request_id] = _Open(question, size, asyncio.get_running_loop().create_future(), origins)
        self._unsaved.mark(RecordKind.QUESTION, question.request_id)
        self._schedule_by(question.expires_at)
        log.info(kind.value + "_received", requestId=question.request_id, server=server)
        return question

    def ask_to_open(self, call: Call, links: Iterable[JsonObject]) -> None:
        """Ask the caller of a failed call to open these links, unless it is asked already, and then to repeat the call.

        Nothing waits for the answers.
        """
        open_urls = {question.params.get("url") for question in self.open(QuestionKind.ELICITATION, call.server)}
        for link in links:
            if link["url"] in open_urls:
                continue
            with suppress(TooManyQuestions):  # the error names the link as well
                seconds = self._limits.question_seconds
                question = self.ask(call.server, QuestionKind.ELICITATION, link, call_id=None, seconds=seconds)
                if self.native is not None and call.asker is not None:
                    self.native.ask_at(call.asker, question, call)

    def _check_room(self, server: str, size: int) -> None:
        limits = self._limits
        if len(self._open) >= limits.questions_per_session:
            raise TooManyQuestions(f"{len(self._open)} questions from all servers are open already")
        own = sum(entry.question.server == server for entry in self._open.values())
        if own >= limits.questions_per_server:
            raise TooManyQuestions(f"{own} questions from this server are open already")
        if sum(entry.size for entry in self._open.values()) + size > QUESTION_BYTES_PER_SESSION:
            raise TooManyQuestions("it is too large in addition to the other open questions")

    async def wait_for_answer(self, question: Question) -> JsonObject:
        """Return the answer in protocol form. Cancelling the wait withdraws the question.

        Raises:
            QuestionClosed
        """
        entry = self._open[question.request_id]
        entry.is_awaited = True
        try:
            return await entry.answer
        finally:
            if question.request_id in self._open:
                self._close(entry, Gone.WITHDRAWN, "the server withdrew it")

    def reject_of_server(self, server: str, reason: str, *, but_of: Collection[str | None] = ()) -> None:
        """Close all questions of a lost server, except those of the calls in `but_of`."""
        for entry in list(self._open.values()):
            if entry.question.server == server and entry.question.call_id not in but_of:
                self._close(entry, Gone.DISCONNECTED, f"the server was lost: {reason}")

    def withdraw_of_call(self, call_id: str) -> None:
        """Withdraw the questions of a call that has ended."""
        for entry in list(self._open.values()):
            if entry.question.call_id == call_id:
                self._close(entry, Gone.WITHDRAWN, "the call that asked has ended")

    def complete_link(self, server: str, elicitation_id: object) -> None:
        """Handle the server's notice that the user has completed a link."""
        for entry in list(self._open.values()):
            question = entry.question
            is_this = question.server == server and question.params.get("elicitationId") == elicitation_id
            if is_this and elicitation_id is not None and not entry.is_awaited:
                self._close(entry, Gone.WITHDRAWN, "the server reports that the user has finished")
        if self.native is not None:
            self.native.complete(server, elicitation_id)

    def tick(self, now: datetime) -> datetime | None:
        """Close questions that have timed out. Return the next deadline, if any."""
        for entry in list(self._open.values()):
            if entry.question.expires_at <= now:
                log.warning(
                    entry.question.kind.value + "_timeout",
                    requestId=entry.question.request_id,
                    server=entry.question.server,
                )
                self._close(entry, Gone.TIMEOUT, "nobody answered in time")
        return min((entry.question.expires_at for entry in self._open.values()), default=None)

    # The caller's side.

    def answer_elicitation(
        self, request_id: str, action: str, content: JsonObject | None, *, by_another: bool = False
    ) -> None:
        """Pass an answer on. Raises: EmceepeeError, and then the question stays open.

        With `by_another`, someone other than the session's caller answered. An event then notifies the caller.
        """
        entry = self._entry(request_id, QuestionKind.ELICITATION)
        answer: JsonObject = {"action": action}
        schema = entry.question.params.get("requestedSchema")
        if action != "accept" and content:
            raise InvalidArguments(f"content goes only with the action accept, not with {action}.")
        if action == "accept" and isinstance(schema, dict):
            answer["content"], problems = fill_in(content or {}, schema)
            if problems:
                raise InvalidArguments(
                    f"The content does not fit the form: {'; '.join(map(str, problems))}. The question stays open: "
                    "correct it and answer again, or decline.",
                    details={"requestId": request_id, "problems": [problem._asdict() for problem in problems]},
                )
        elif action == "accept" and content:
            raise InvalidArguments("This question has no form to fill in: accept it without content.")
        self._answer(entry, action, answer, by_another=by_another)

    def answer_sampling(self, request_id: str, answer: JsonObject, *, by_another: bool = False) -> None:
        """Pass a completion on. Raises: EmceepeeError."""
        self._answer(self._entry(request_id, QuestionKind.SAMPLING), "accept", answer, by_another=by_another)

    def cancel(self, request_id: str, kind: QuestionKind, reason: str | None) -> None:
        """Notify the backend that the question is cancelled. Raises: EmceepeeError."""
        self._close(self._entry(request_id, kind), Gone.CANCELLED, reason or "cancelled by the caller")

    def _entry(self, request_id: str, kind: QuestionKind) -> _Open:
        entry = self._open.get(request_id)
        if entry is None or entry.question.kind is not kind:
            lister = "get_elicitations" if kind is QuestionKind.ELICITATION else "get_sampling_requests"
            why = self._why_foreign(request_id)
            raise EmceepeeError(
                f'No {kind} request "{request_id[:60]}" waits for an answer here. {why}'
                if why is not None
                else f'No {kind} request "{request_id[:60]}" waits for an answer: it was answered, it expired, or it '
                f"never existed. {call_to(lister)} shows open requests.",
                code=ErrorCode.REQUEST_NOT_FOUND,
            )
        return entry

    def _answer(self, entry: _Open, action: str, answer: JsonObject, *, by_another: bool) -> None:
        question = entry.question.answered(action)
        self._remove(question)
        waited = (self._clock.now() - question.created_at).total_seconds()
        log.info(question.kind.value + "_responded", requestId=question.request_id, durationMs=round(waited * 1000))
        if by_another:
            self._emit_gone(question, Gone.ANSWERED, "someone else answered it")
        else:
            self._notify_change()
        resolve(entry.answer, answer)

    def _close(self, entry: _Open, why: Gone, message: str) -> None:
        question = entry.question.gone(why)
        self._remove(question)
        self._emit_gone(question, why, message)
        reject(entry.answer, QuestionClosed(why, message))

    def _remove(self, question: Question) -> None:
        del self._open[question.request_id]
        self._unread.pop(question.request_id, None)
        self._unsaved.mark(RecordKind.QUESTION, question.request_id)
        if self.native is not None:
            self.native.on_closed(question)

    # Storage.

    def find(self, request_id: str) -> Question | None:
        entry = self._open.get(request_id)
        return None if entry is None else entry.question

    def expire_restored(self, questions: Iterable[Question]) -> None:
        """Report the open questions of an ended process as gone: their servers ended with it."""
        for question in sorted(questions, key=lambda question: question.request_id):
            self._unsaved.mark(RecordKind.QUESTION, question.request_id)
            self._emit_gone(question, Gone.DISCONNECTED, "emceepee was restarted, and with it the server that asked")

    def _emit_gone(self, question: Question, why: Gone, message: str) -> None:
        self._activity.emit(
            question.kind.gone_event, question.server, requestId=question.request_id, reason=str(why), message=message
        )
