"""A question that a backend asks its client and waits for: an elicitation or a sampling request."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from emceepee.state.events import EventType
from emceepee.state.machine import Machine, Move
from emceepee.wire.json_types import JsonObject


class ElicitationStatus(StrEnum):
    """The status of a question to the user."""

    PENDING = "pending"
    """The question waits for an answer."""
    ACCEPTED = "accepted"
    """The user agreed, with content if the question has a form."""
    DECLINED = "declined"
    """The user said no."""
    CANCELLED = "cancelled"
    """The question was dismissed without an answer."""
    EXPIRED = "expired"
    """Nobody answered in time."""
    REJECTED = "rejected"
    """The server was lost."""
    WITHDRAWN = "withdrawn"
    """The server, or the call that asked, no longer wants it."""


class SamplingStatus(StrEnum):
    """The status of a sampling request."""

    PENDING = "pending"
    """The question waits for an answer."""
    COMPLETED = "completed"
    """The request was answered."""
    CANCELLED = "cancelled"
    """The caller refused the request."""
    EXPIRED = "expired"
    """Nobody answered in time."""
    REJECTED = "rejected"
    """The server was lost."""
    WITHDRAWN = "withdrawn"
    """The server, or the call that asked, no longer wants it."""


_E, _P = ElicitationStatus, SamplingStatus
ELICITATION = Machine(
    "pending_elicitation_states",
    "A question of a server to the user",
    begins=(_E.PENDING, "A server asks"),
    moves=[
        Move(_E.PENDING, _E.ACCEPTED, "respond_to_elicitation accept"),
        Move(_E.PENDING, _E.DECLINED, "respond_to_elicitation decline"),
        Move(_E.PENDING, _E.CANCELLED, "respond_to_elicitation cancel, or cancel_elicitation_request"),
        Move(_E.PENDING, _E.EXPIRED, "Nobody answers in time"),
        Move(_E.PENDING, _E.REJECTED, "The server is lost"),
        Move(_E.PENDING, _E.WITHDRAWN, "The server or its call gives up"),
    ],
    ends="The server has its answer, or an error",
)
SAMPLING = Machine(
    "pending_sampling_states",
    "A server's request for a completion",
    begins=(_P.PENDING, "A server asks"),
    moves=[
        Move(_P.PENDING, _P.COMPLETED, "respond_to_sampling"),
        Move(_P.PENDING, _P.CANCELLED, "cancel_sampling_request"),
        Move(_P.PENDING, _P.EXPIRED, "Nobody answers in time"),
        Move(_P.PENDING, _P.REJECTED, "The server is lost"),
        Move(_P.PENDING, _P.WITHDRAWN, "The server or its call gives up"),
    ],
    ends="The server has its answer, or an error",
)


class QuestionKind(StrEnum):
    """The two kinds of questions that a backend can ask."""

    ELICITATION = "elicitation"
    """A question to the user."""
    SAMPLING = "sampling"
    """A request to the model."""

    @property
    def first_status(self) -> ElicitationStatus | SamplingStatus:
        return _E.PENDING if self is QuestionKind.ELICITATION else _P.PENDING

    @property
    def asked_event(self) -> EventType:
        return EventType.ELICITATION_REQUEST if self is QuestionKind.ELICITATION else EventType.SAMPLING_REQUEST

    @property
    def gone_event(self) -> EventType:
        return EventType.ELICITATION_EXPIRED if self is QuestionKind.ELICITATION else EventType.SAMPLING_EXPIRED


class Gone(StrEnum):
    """Why a question no longer waits, other than an answer by the notified caller itself."""

    TIMEOUT = "timeout"
    """Nobody answered in time."""
    DISCONNECTED = "disconnected"
    """The server was lost."""
    WITHDRAWN = "withdrawn"
    """The server or its call gave up."""
    CANCELLED = "cancelled"
    """The caller cancelled it."""
    ANSWERED = "answered"
    """Someone else answered."""


_ELICITATION_GONE = {
    Gone.TIMEOUT: _E.EXPIRED,
    Gone.DISCONNECTED: _E.REJECTED,
    Gone.WITHDRAWN: _E.WITHDRAWN,
    Gone.CANCELLED: _E.CANCELLED,
}
_SAMPLING_GONE = {
    Gone.TIMEOUT: _P.EXPIRED,
    Gone.DISCONNECTED: _P.REJECTED,
    Gone.WITHDRAWN: _P.WITHDRAWN,
    Gone.CANCELLED: _P.CANCELLED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question. Its answer is never part of the record: it goes only to the backend."""

    request_id: str
    server: str
    kind: QuestionKind
    params: JsonObject
    created_at: datetime
    expires_at: datetime
    call_id: str | None = None
    status: ElicitationStatus | SamplingStatus

    def answered(self, action: str = "accept") -> "Question":
        """Return the question after an `accept`, `decline`, or `cancel`. A sampling request is always completed."""
        if self.kind is QuestionKind.SAMPLING:
            return self._moved(_P.COMPLETED)
        return self._moved({"accept": _E.ACCEPTED, "decline": _E.DECLINED, "cancel": _E.CANCELLED}[action])

    def gone(self, why: Gone) -> "Question":
        return self._moved((_SAMPLING_GONE if self.kind is QuestionKind.SAMPLING else _ELICITATION_GONE)[why])

    def _moved(self, target: ElicitationStatus | SamplingStatus) -> "Question":
        if isinstance(target, SamplingStatus):
            SAMPLING.check(SamplingStatus(self.status), target)
        else:
            ELICITATION.check(ElicitationStatus(self.status), target)
        return replace(self, status=target)
