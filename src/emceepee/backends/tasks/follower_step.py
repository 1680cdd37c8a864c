"""How a backend's own task is followed, as a pure function: `step` decides, `follower` performs.

StatusReceived(working)          ReportStatus · PollAfter 20 ms, 40, 80 … up to the backend's interval
StatusReceived(input_required)   2026-07-28: AskQuestion, once each    2025-11-25: FetchResult, during which it asks
StatusReceived(completed)        2026-07-28: CompleteCall              2025-11-25: FetchResult ── TaskResultArrived
TaskRequestLost                  PollAfter a delay: after a reconnect, the task still exists, or it is refused
"""

from dataclasses import dataclass, field, replace
from enum import Enum, auto

from emceepee.backends.tasks.task_messages import RemoteStatus, Snapshot, without_related_task
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_PARAMS, METHOD_NOT_FOUND

FIRST_PAUSE = 0.02  # seconds; quick tasks are done by then
LEAST_INTERVAL = 0.05  # minimum, even if a backend requests less
USUAL_INTERVAL = 1.0  # for a backend that requests no interval
LONGEST_INTERVAL = 60.0
PUSHED_FACTOR, LEAST_PUSHED, LONGEST_PUSHED = 5, 5.0, 30.0  # while status changes are pushed; one may get lost
RESULT_SECONDS = 10.0  # for a result that is known to exist
FIRST_RETRY, LONGEST_RETRY = 0.25, 15.0
MOST_REFUSALS = 5  # in a row, before the task is abandoned


class Inquiry(Enum):
    """The request that was sent to the backend."""

    STATUS = auto()
    RESULT = auto()


class NoResultReason(Enum):
    """Why there will be no result."""

    FORGOTTEN = auto()
    """The backend does not recognize the task, or no longer does."""
    NOT_OFFERED = auto()
    """The backend has no method to ask for the task."""
    CANCELLED = auto()
    """The backend cancelled the task by itself."""
    ERROR = auto()
    """The call ended with a JSON-RPC error."""
    BROKEN = auto()
    """The backend's status reports are repeatedly invalid."""


# Events.


@dataclass(frozen=True, slots=True)
class StatusReceived:
    """The backend reported the task's status, on request or unasked."""

    snapshot: Snapshot
    is_pushed: bool = False


@dataclass(frozen=True, slots=True)
class TaskResultArrived:
    """A 2025-11-25 backend returned the requested result."""

    result: JsonObject


@dataclass(frozen=True, slots=True)
class TaskRequestRefused:
    """The backend answered the request with an error."""

    inquiry: Inquiry
    error: JsonObject


@dataclass(frozen=True, slots=True)
class TaskRequestLost:
    """The request got no answer."""

    inquiry: Inquiry


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """The backend has received the answer to a question of the task."""

    key: str


Event = StatusReceived | TaskResultArrived | TaskRequestRefused | TaskRequestLost | QuestionAnswered


# Decisions.


@dataclass(frozen=True, slots=True)
class PollAfter:
    """Ask for the status after this time. This replaces any earlier plan to poll."""

    seconds: float


@dataclass(frozen=True, slots=True)
class FetchResult:
    """Request the result, and replace a request for it that is in flight."""


@dataclass(frozen=True, slots=True)
class AskQuestion:
    """Ask the caller a question."""

    key: str
    question: JsonObject


@dataclass(frozen=True, slots=True)
class WithdrawQuestion:
    """Withdraw a question whose answer the backend no longer wants."""

    key: str


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """Report the status to the caller."""


@dataclass(frozen=True, slots=True)
class CompleteCall:
    result: JsonObject


@dataclass(frozen=True, slots=True)
class FailCall:
    reason: NoResultReason
    error: JsonObject | None = None


Decision = PollAfter | FetchResult | AskQuestion | WithdrawQuestion | ReportStatus | CompleteCall | FailCall


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowerState:
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


Step = tuple[FollowerState, list[Decision]]


def step(state: FollowerState, event: Event) -> Step:
    """Return the new state and the decisions to perform, in this order. Events that arrive too late change nothing."""
    if state.is_over:
        return state, []
    match event:
        case StatusReceived(snapshot, is_pushed):
            return _handle_status(state, snapshot, is_pushed=is_pushed)
        case TaskResultArrived(result):
            return _finish(state, CompleteCall(without_related_task(result)))
        case TaskRequestRefused(inquiry, error):
            return _handle_refusal(state, inquiry, error)
        case TaskRequestLost(inquiry):
            return _handle_loss(state, inquiry)
        case QuestionAnswered(key):
            state = replace(state, unanswered=state.unanswered - {key}, pause=FIRST_PAUSE)
            return _poll(state)


def _handle_status(state: FollowerState, snapshot: Snapshot, *, is_pushed: bool) -> Step:
    if state.status.is_final and not snapshot.status.is_final:
        return state, [PollAfter(RESULT_SECONDS)]  # older than the stored status
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
        return _finish(state, *changed, FailCall(NoResultReason.CANCELLED))
    if state.is_modern:
        next_state, decisions = _handle_modern_status(state, snapshot)
    else:
        next_state, decisions = _handle_handshake_status(state, was_final=before.status.is_final)
    return next_state, changed + decisions


def _handle_modern_status(state: FollowerState, snapshot: Snapshot) -> Step:
    if state.status is RemoteStatus.COMPLETED:
        return _finish(
            state, CompleteCall(snapshot.result) if snapshot.result is not None else FailCall(NoResultReason.BROKEN)
        )
    if state.status is RemoteStatus.FAILED:
        return _finish(state, FailCall(NoResultReason.ERROR, snapshot.error))
    questions = snapshot.questions if state.status is RemoteStatus.INPUT_REQUIRED else {}
    withdrawn = [WithdrawQuestion(key) for key in sorted(state.unanswered - set(questions))]
    new = {key: question for key, question in questions.items() if key not in state.asked}
    state = replace(state, asked=state.asked | set(new), unanswered=(state.unanswered & set(questions)) | set(new))
    next_state, polling = _poll(state)
    return next_state, [*withdrawn, *(AskQuestion(key, question) for key, question in new.items()), *polling]


def _handle_handshake_status(state: FollowerState, *, was_final: bool) -> Step:
    if state.status.is_final:
        # An early request for the result gets its answer now. If no answer arrives and the end is reported twice, the
        # answer was lost.
        again = not state.is_fetching or was_final
        fetching: list[Decision] = [FetchResult()] if again else []
        return replace(state, is_fetching=True), [*fetching, PollAfter(RESULT_SECONDS)]
    if state.status is RemoteStatus.INPUT_REQUIRED and not state.is_fetching:
        next_state, polling = _poll(replace(state, is_fetching=True))
        return next_state, [FetchResult(), *polling]
    return _poll(state)


def _handle_refusal(state: FollowerState, inquiry: Inquiry, error: JsonObject) -> Step:
    if inquiry is Inquiry.RESULT:
        if state.status.is_final:
            return _finish(state, FailCall(NoResultReason.ERROR, error))  # the error of the call itself
        return _poll(replace(state, is_fetching=False, pause=_interval(state)))  # the next status explains the error
    code = error.get("code")
    if code == INVALID_PARAMS:
        return _finish(state, FailCall(NoResultReason.FORGOTTEN, error))
    if code == METHOD_NOT_FOUND:
        return _finish(state, FailCall(NoResultReason.NOT_OFFERED, error))
    state = replace(state, refusals=state.refusals + 1)
    if state.refusals > MOST_REFUSALS:
        return _finish(state, FailCall(NoResultReason.BROKEN, error))
    return state, [PollAfter(_retry_pause(state.refusals))]


def _handle_loss(state: FollowerState, inquiry: Inquiry) -> Step:
    is_fetching = state.is_fetching and inquiry is not Inquiry.RESULT
    state = replace(state, is_pushed=False, is_fetching=is_fetching, losses=state.losses + 1, pause=FIRST_PAUSE)
    return state, [PollAfter(_retry_pause(state.losses))]


def _poll(state: FollowerState) -> Step:
    if state.is_pushed:
        seldom = min(max(_interval(state) * PUSHED_FACTOR, LEAST_PUSHED), LONGEST_PUSHED)
        return state, [PollAfter(max(seldom, _interval(state)))]
    pause = min(state.pause, _interval(state))
    return replace(state, pause=pause * 2), [PollAfter(pause)]


def _finish(state: FollowerState, *decisions: Decision) -> Step:
    withdrawn = [WithdrawQuestion(key) for key in sorted(state.unanswered)]
    return replace(state, is_over=True, unanswered=frozenset()), [*withdrawn, *decisions]


def _interval(state: FollowerState) -> float:
    interval = state.interval if state.interval is not None else USUAL_INTERVAL
    return min(max(interval, LEAST_INTERVAL), LONGEST_INTERVAL)


def _retry_pause(tries: int) -> float:
    return min(FIRST_RETRY * 2.0 ** min(tries - 1, 16), LONGEST_RETRY)
