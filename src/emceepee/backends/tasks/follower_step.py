"""How a backend's own task is followed, as a pure function: `step` decides, `follower` performs.

Told(working)          Report · PollAfter 20 ms, 40, 80 … up to the interval that the backend asks for
Told(input_required)   2026-07-28: Ask each question once      2025-11-25: FetchResult, over which it asks
Told(completed)        2026-07-28: Complete                    2025-11-25: FetchResult ── ResultArrived ── Complete
Lost                   PollAfter a delay: after a reconnect the task is still there, or Refused
"""

from dataclasses import dataclass, field, replace
from enum import Enum, auto

from emceepee.backends.tasks.task_messages import RemoteStatus, Snapshot, without_related_task
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_PARAMS, METHOD_NOT_FOUND

FIRST_PAUSE = 0.02  # seconds; quick tasks are done by then
LEAST_INTERVAL = 0.05  # even if a backend asks for less
USUAL_INTERVAL = 1.0  # of a backend that asks for none
LONGEST_INTERVAL = 60.0
PUSHED_FACTOR, LEAST_PUSHED, LONGEST_PUSHED = 5, 5.0, 30.0  # while status changes are pushed; a disconnect may lose one
RESULT_SECONDS = 10.0  # for a result that is known to exist
FIRST_RETRY, LONGEST_RETRY = 0.25, 15.0
MOST_REFUSALS = 5  # in a row, before the task is abandoned


class Inquiry(Enum):
    """The request that was sent to the backend."""

    STATUS = auto()
    RESULT = auto()


class Reason(Enum):
    """Why there will be no result."""

    FORGOTTEN = auto()
    """The backend does not know the task (any more)."""
    NOT_OFFERED = auto()
    """It has no way to ask for it."""
    CANCELLED = auto()
    """It gave the task up by itself."""
    ERROR = auto()
    """The call ended with a JSON-RPC error."""
    BROKEN = auto()
    """The server's statuses are repeatedly invalid."""


# Events.


@dataclass(frozen=True, slots=True)
class Told:
    """The backend reported the task's status, on request or unasked."""

    snapshot: Snapshot
    is_pushed: bool = False


@dataclass(frozen=True, slots=True)
class TaskResultArrived:
    """A 2025-11-25 backend returned the requested result."""

    result: JsonObject


@dataclass(frozen=True, slots=True)
class TaskRequestRefused:
    """The backend answered with an error."""

    inquiry: Inquiry
    error: JsonObject


@dataclass(frozen=True, slots=True)
class Lost:
    """The request got no answer."""

    inquiry: Inquiry


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """The backend has received the answer to a question of the task."""

    key: str


Event = Told | TaskResultArrived | TaskRequestRefused | Lost | QuestionAnswered


# Decisions.


@dataclass(frozen=True, slots=True)
class PollAfter:
    """Ask for the status after this time. This replaces any earlier plan."""

    seconds: float


@dataclass(frozen=True, slots=True)
class FetchResult:
    """Ask for the result, and replace a request for it that is under way."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Ask the caller a question."""

    key: str
    question: JsonObject


@dataclass(frozen=True, slots=True)
class Withdraw:
    """Withdraw a question whose answer the backend no longer wants."""

    key: str


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """Report the status to the caller."""


@dataclass(frozen=True, slots=True)
class CompleteCall:
    result: JsonObject


@dataclass(frozen=True, slots=True)
class Fail:
    reason: Reason
    error: JsonObject | None = None


Decision = PollAfter | FetchResult | Ask | Withdraw | ReportStatus | CompleteCall | Fail


@dataclass(frozen=True, slots=True, kw_only=True)
class Following:
    """The state of following one task."""

    is_modern: bool
    status: RemoteStatus = RemoteStatus.WORKING
    message: str | None = None
    interval: float | None = None
    pause: float = FIRST_PAUSE  # before the next poll
    is_pushed: bool = False  # whether the backend reports changes unasked
    is_fetching: bool = False  # whether the result was requested
    asked: frozenset[str] = field(default_factory=frozenset)
    unanswered: frozenset[str] = field(default_factory=frozenset)
    refusals: int = 0  # in a row, as is the next field
    losses: int = 0
    is_over: bool = False


Step = tuple[Following, list[Decision]]


def step(state: Following, event: Event) -> Step:
    """Return the new state and the decisions to perform, in this order. Late events change nothing."""
    if state.is_over:
        return state, []
    match event:
        case Told(snapshot, is_pushed):
            return _told(state, snapshot, is_pushed=is_pushed)
        case TaskResultArrived(result):
            return _over(state, CompleteCall(without_related_task(result)))
        case TaskRequestRefused(inquiry, error):
            return _refused(state, inquiry, error)
        case Lost(inquiry):
            return _lost(state, inquiry)
        case QuestionAnswered(key):
            state = replace(state, unanswered=state.unanswered - {key}, pause=FIRST_PAUSE)
            return _poll(state)


def _told(state: Following, snapshot: Snapshot, *, is_pushed: bool) -> Step:
    if state.status.is_final and not snapshot.status.is_final:
        return state, [PollAfter(RESULT_SECONDS)]  # older than the known status
    before = state
    state = replace(
        state,
        status=snapshot.status,
        message=snapshot.message,
        interval=snapshot.interval,
        is_pushed=state.is_pushed or is_pushed,
        refusals=0,
        losses=0,
    )
    changed: list[Decision] = []
    if (state.status, state.message) != (before.status, before.message):
        changed = [ReportStatus()]
    if state.status is RemoteStatus.CANCELLED:
        return _over(state, *changed, Fail(Reason.CANCELLED))
    if state.is_modern:
        following, decisions = _told_modern(state, snapshot)
    else:
        following, decisions = _told_in_handshake_era(state, was_final=before.status.is_final)
    return following, changed + decisions


def _told_modern(state: Following, snapshot: Snapshot) -> Step:
    if state.status is RemoteStatus.COMPLETED:
        return _over(state, CompleteCall(snapshot.result) if snapshot.result is not None else Fail(Reason.BROKEN))
    if state.status is RemoteStatus.FAILED:
        return _over(state, Fail(Reason.ERROR, snapshot.error))
    asked = snapshot.questions if state.status is RemoteStatus.INPUT_REQUIRED else {}
    withdrawn = [Withdraw(key) for key in sorted(state.unanswered - set(asked))]
    new = {key: question for key, question in asked.items() if key not in state.asked}
    state = replace(state, asked=state.asked | set(new), unanswered=(state.unanswered & set(asked)) | set(new))
    following, polling = _poll(state)
    return following, [*withdrawn, *(Ask(key, question) for key, question in new.items()), *polling]


def _told_in_handshake_era(state: Following, *, was_final: bool) -> Step:
    if state.status.is_final:
        # An early request for the result gets its answer now. If it does not, and the end is reported twice, it was
        # lost.
        again = not state.is_fetching or was_final
        fetching: list[Decision] = [FetchResult()] if again else []
        return replace(state, is_fetching=True), [*fetching, PollAfter(RESULT_SECONDS)]
    if state.status is RemoteStatus.INPUT_REQUIRED and not state.is_fetching:
        following, polling = _poll(replace(state, is_fetching=True))
        return following, [FetchResult(), *polling]
    return _poll(state)


def _refused(state: Following, inquiry: Inquiry, error: JsonObject) -> Step:
    if inquiry is Inquiry.RESULT:
        if state.status.is_final:
            return _over(state, Fail(Reason.ERROR, error))  # the error of the call itself
        return _poll(replace(state, is_fetching=False, pause=_interval(state)))  # the next status explains it
    code = error.get("code")
    if code == INVALID_PARAMS:
        return _over(state, Fail(Reason.FORGOTTEN, error))
    if code == METHOD_NOT_FOUND:
        return _over(state, Fail(Reason.NOT_OFFERED, error))
    state = replace(state, refusals=state.refusals + 1)
    if state.refusals > MOST_REFUSALS:
        return _over(state, Fail(Reason.BROKEN, error))
    return state, [PollAfter(_retry_pause(state.refusals))]


def _lost(state: Following, inquiry: Inquiry) -> Step:
    is_fetching = state.is_fetching and inquiry is not Inquiry.RESULT
    state = replace(state, is_pushed=False, is_fetching=is_fetching, losses=state.losses + 1, pause=FIRST_PAUSE)
    return state, [PollAfter(_retry_pause(state.losses))]


def _poll(state: Following) -> Step:
    if state.is_pushed:
        seldom = min(max(_interval(state) * PUSHED_FACTOR, LEAST_PUSHED), LONGEST_PUSHED)
        return state, [PollAfter(max(seldom, _interval(state)))]
    pause = min(state.pause, _interval(state))
    return replace(state, pause=pause * 2), [PollAfter(pause)]


def _over(state: Following, *decisions: Decision) -> Step:
    withdrawn = [Withdraw(key) for key in sorted(state.unanswered)]
    return replace(state, is_over=True, unanswered=frozenset()), [*withdrawn, *decisions]


def _interval(state: Following) -> float:
    wanted = state.interval if state.interval is not None else USUAL_INTERVAL
    return min(max(wanted, LEAST_INTERVAL), LONGEST_INTERVAL)


def _retry_pause(tries: int) -> float:
    return min(FIRST_RETRY * 2.0 ** min(tries - 1, 16), LONGEST_RETRY)
