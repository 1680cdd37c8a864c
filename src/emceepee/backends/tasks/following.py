"""How a backend's own task is followed, as a value: `step` decides, `follower` carries it out.

Told(working)          Report · PollAfter 20 ms, 40, 80 … up to the interval that the backend asks for
Told(input_required)   2026-07-28: Ask each question once      2025-11-25: FetchResult, on which it asks
Told(completed)        2026-07-28: Complete                    2025-11-25: FetchResult ── ResultArrived ── Complete
Lost                   PollAfter a while: the connection comes back, and the task is still there, or Refused
"""

from dataclasses import dataclass, field, replace
from enum import Enum, auto

from emceepee.backends.tasks.wire import RemoteStatus, Snapshot, without_related_task
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_PARAMS, METHOD_NOT_FOUND

FIRST_PAUSE = 0.02  # seconds: a task that is quick is done by then
LEAST_INTERVAL = 0.05  # whatever a backend asks for
USUAL_INTERVAL = 1.0  # of one that asks for nothing
LONGEST_INTERVAL = 60.0
PUSHED_FACTOR, LEAST_PUSHED, LONGEST_PUSHED = 5, 5.0, 30.0  # while changes are told unasked; a cut may lose that
RESULT_SECONDS = 10.0  # for a result that is known to be there
FIRST_RETRY, LONGEST_RETRY = 0.25, 15.0
MOST_REFUSALS = 5  # in a row, before the task is given up


class Inquiry(Enum):
    """What the backend was asked."""

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
    """What it says makes no sense, again and again."""


# What happens.


@dataclass(frozen=True, slots=True)
class Told:
    """The backend said how the task stands: asked, or by itself."""

    snapshot: Snapshot
    is_pushed: bool = False


@dataclass(frozen=True, slots=True)
class TaskResultArrived:
    """Of 2025-11-25, where it is asked for."""

    result: JsonObject


@dataclass(frozen=True, slots=True)
class TaskRequestRefused:
    """The backend answered with an error."""

    inquiry: Inquiry
    error: JsonObject


@dataclass(frozen=True, slots=True)
class Lost:
    """No answer could be had."""

    inquiry: Inquiry


@dataclass(frozen=True, slots=True)
class QuestionAnswered:
    """A question of the task was answered, and the backend has the answer."""

    key: str


Event = Told | TaskResultArrived | TaskRequestRefused | Lost | QuestionAnswered


# What is to be done.


@dataclass(frozen=True, slots=True)
class PollAfter:
    """Ask for the status then; whatever was planned before is not."""

    seconds: float


@dataclass(frozen=True, slots=True)
class FetchResult:
    """Ask for the result, anew if that is under way."""


@dataclass(frozen=True, slots=True)
class Ask:
    """Put a question to the caller."""

    key: str
    question: JsonObject


@dataclass(frozen=True, slots=True)
class Withdraw:
    """The backend no longer wants an answer."""

    key: str


@dataclass(frozen=True, slots=True)
class ReportStatus:
    """Tell the caller how it stands."""


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
    """Where the following of one task stands."""

    is_modern: bool
    status: RemoteStatus = RemoteStatus.WORKING
    message: str | None = None
    interval: float | None = None
    pause: float = FIRST_PAUSE  # before the next poll
    is_pushed: bool = False  # whether the backend tells of changes by itself
    is_fetching: bool = False  # whether the result was asked for
    asked: frozenset[str] = field(default_factory=frozenset)
    unanswered: frozenset[str] = field(default_factory=frozenset)
    refusals: int = 0  # in a row, as are the next
    losses: int = 0
    is_over: bool = False


Step = tuple[Following, list[Decision]]


def step(state: Following, event: Event) -> Step:
    """Where it stands now, and what is to be done, in this order. What comes too late changes nothing."""
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
        return state, [PollAfter(RESULT_SECONDS)]  # older than what is known
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
        # An early request for the result is answered now. One that is not, and is told of twice, was lost on the way.
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
            return _over(state, Fail(Reason.ERROR, error))  # that of the call itself
        return _poll(replace(state, is_fetching=False, pause=_interval(state)))  # the status will tell
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
