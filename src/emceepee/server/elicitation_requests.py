"""Sends questions to handshake-era callers as elicitation requests. They answer as they would answer any server."""

from collections.abc import Callable

from emceepee.errors import EmceepeeError
from emceepee.server.eras import MODES_SINCE, HandshakeEra
from emceepee.sessions.session import Session
from emceepee.state.attendance import Attendance
from emceepee.state.question import Question
from emceepee.telemetry.logs import EventLog
from emceepee.tools.replies.native_questions import URL, mode_of, read_attendance, request_params, take_answer
from emceepee.wire.json_rpc import Response, notification_message, request_message
from emceepee.wire.json_types import JsonObject

log = EventLog("server")
WITHDRAWN = "The question was answered elsewhere or withdrawn."
SendMessage = Callable[[JsonObject], None]
Reach = Callable[[object | None], SendMessage | None]  # finds a sender, by call if one is given; None if there is none


class ElicitationRequests:
    """The elicitation requests of one connection, as an `Asker` of its session. Each reuses its question's id.

    backend asks ─▶ ask ── elicitation/create ──▶ caller
                                                    ├─ response ─▶ receive ─▶ the answer, as if through a tool
    answered elsewhere, expired, withdrawn          │               └ unusable, or dismissed unread ─▶ the call is
        │                                           │                 promoted, and tools answer
        └─▶ withdraw ── notifications/cancelled ──▶ caller
    """

    __slots__ = ("_attendance", "_modes", "_names_mode", "_open", "_reach", "_session")

    def __init__(self, session: Session, reach: Reach, era: HandshakeEra) -> None:
        self._session, self._reach, self._modes = session, reach, era.elicitation_modes
        self._names_mode = era.version >= MODES_SINCE
        self._open: dict[str, tuple[Question, object | None, float]] = {}  # with the monotonic send time
        self._attendance = Attendance.UNKNOWN
        session.questions.add_asker(self)

    @classmethod
    def of(cls, session: Session, reach: Reach, era: HandshakeEra) -> "ElicitationRequests | None":
        """Return None if the caller accepts no questions, or the session's options disable native questions."""
        return cls(session, reach, era) if session.notice_options.asks_natively and era.elicitation_modes else None

    def __repr__(self) -> str:
        return f"<ElicitationRequests {'+'.join(sorted(self._modes))} open={len(self._open)}>"

    def ask(self, question: Question, call: object | None) -> bool:
        if self._attendance is Attendance.UNATTENDED and not self._session.notice_options.trusts_dismissals:
            return False
        params = request_params(question) if mode_of(question) in self._modes else None
        send = None if params is None else self._reach(call)
        if params is None or send is None:
            return False
        if not self._names_mode:
            del params["mode"]
        elif mode_of(question) == URL:
            params["elicitationId"] = question.request_id
        self._open[question.request_id] = question, call, self._session.clock.monotonic()
        send(request_message(question.request_id, "elicitation/create", params))
        return True

    def receive(self, response: Response) -> None:
        """Handle the caller's response, which may be to a question that no longer waits."""
        found = self._open.pop(response.request_id, None) if isinstance(response.request_id, str) else None
        if found is None:
            return
        (question, _, sent_at), answer = found, response.message.get("result")
        seconds = self._session.clock.monotonic() - sent_at
        self._attendance, is_from_person = read_attendance(self._attendance, answer, seconds)
        if not is_from_person and not self._session.notice_options.trusts_dismissals:
            self._session.questions.record_unread_dismissal(question, seconds)
            self._session.give_up_asking(question.request_id)
            return
        try:
            take_answer(self._session.questions, question, answer)
        except EmceepeeError:
            # Do not log the error's message: it may contain the user's words.
            log.info("elicitation_answer_unusable", requestId=question.request_id, server=question.server)
            self._session.give_up_asking(question.request_id)

    def withdraw(self, question: Question) -> None:
        asked = self._open.pop(question.request_id, None)
        if asked is not None and (send := self._reach(asked[1])) is not None:
            told = {"requestId": question.request_id, "reason": WITHDRAWN}
            send(notification_message("notifications/cancelled", told))

    def complete(self, request_id: str) -> None:
        if (send := self._reach(None)) is not None:
            send(notification_message("notifications/elicitation/complete", {"elicitationId": request_id}))

    def close(self) -> None:
        """Close with the connection. Open questions then wait for an answer through a tool."""
        self._open.clear()
        if self._session.questions.native is not None:
            self._session.questions.native.remove(self)
