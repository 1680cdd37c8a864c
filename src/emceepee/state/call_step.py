"""A call as a value: its state, and `step`, the only function that decides what an event changes.

A tool starts a call and waits for it; the session owns the call. Two timelines:

    waiting ───── ResultArrived ─────▶ finished
      tool waits        └ the tool is released and returns the result

    waiting ── PATIENCE_OVER ──▶ promoted ───── ResultArrived ─────▶ finished
      tool waits      │             task is working        └ the task has the result
                      └ a task is created, the tool is released and returns it

Events race: the result with the end of the patience, cancel_task with the loss of the server. The first event that ends
the call decides its outcome; later events change nothing. `step` awaits nothing and has no side effects: it returns the
next state and the effects, which `sessions/calls.py` executes in the given order.
"""

from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import NamedTuple

from emceepee.errors import EmceepeeError
from emceepee.state.machine import Machine, Move
from emceepee.wire.json_types import JsonObject


class CallStage(StrEnum):
    """The stage of a call."""

    WAITING = "waiting"
    """The request was sent, and its tool waits for the result."""
    PROMOTED = "promoted"
    """The call continues as a task, and its tool has returned."""
    FINISHED = "finished"
    """The call has its result, or an error."""
    CANCELLED = "cancelled"
    """The call was cancelled before its result or an error arrived."""
    LEFT = "left"
    """The server runs the call as a task of its own. The session's next holder follows that task."""


_S = CallStage
CALL: Machine[CallStage] = Machine(
    "tool_call_lifecycle",
    "How a call returns directly or becomes a task",
    begins=(_S.WAITING, "execute_tool, read_resource or get_prompt"),
    moves=[
        Move(_S.WAITING, _S.FINISHED, "The result or an error arrives in time and is returned"),
        Move(_S.WAITING, _S.PROMOTED, "timeout_ms passes, the server asks a question, or the client stops waiting"),
        Move(_S.WAITING, _S.CANCELLED, "The caller cancels the request"),
        Move(_S.PROMOTED, _S.FINISHED, "The result or an error arrives and is stored in the task"),
        Move(_S.PROMOTED, _S.CANCELLED, "cancel_task, or the time to live ends"),
        Move(_S.PROMOTED, _S.LEFT, "emceepee stops while the server runs it as a task of its own"),
    ],
    ends="No further events",
)


class CallState(NamedTuple):
    """The state of a call. `has_task` is set once it is promoted, or if its reply did not reach the client.

    It is a tuple because every call creates one: creating a frozen dataclass takes three times as long.
    """

    stage: CallStage = CallStage.WAITING
    outcome: JsonObject | EmceepeeError | None = None
    has_task: bool = False
    waits_for_answers: bool = False  # a question does not promote it, because another client answers
    progress: JsonObject | None = None
    message: str | None = None  # the status in the server's words

    @property
    def has_ended(self) -> bool:
        return CALL.is_final(self.stage)


WAITING = CallState()
WAITING_FOR_ANSWERS = CallState(waits_for_answers=True)


# Events.


@dataclass(frozen=True, slots=True)
class ResultArrived:
    """The backend returned a result."""

    outcome: JsonObject


@dataclass(frozen=True, slots=True)
class ErrorArrived:
    """The backend returned an error, or no answer could be obtained."""

    outcome: EmceepeeError


@dataclass(frozen=True, slots=True)
class ServerRemoved:
    """The server was removed."""

    error: EmceepeeError


@dataclass(frozen=True, slots=True)
class Stopping:
    """The process stops, so a new task could not finish."""

    error: EmceepeeError


@dataclass(frozen=True, slots=True)
class ProgressReported:
    """The backend reported its progress."""

    progress: JsonObject


@dataclass(frozen=True, slots=True)
class StatusReported:
    """The backend reported the status of its own task."""

    message: str


class BareEvent(Enum):
    """Events without data."""

    PATIENCE_OVER = auto()
    """The tool's wait has timed out."""
    QUESTION_ASKED = auto()
    """The server asked a question, perhaps in this call. A waiting model cannot answer."""
    CLIENT_GONE = auto()
    """The client stopped waiting without the intention to cancel."""
    CANCEL_REQUESTED = auto()
    """The caller cancels the request, or the task that the call has become."""
    WAIT_CANCELLED = auto()
    """The waiting tool was cancelled. A call that has just become a task continues (race)."""
    RUNNER_CANCELLED = auto()
    """The request to the backend was cancelled, by one of the other events or because the session closes."""
    TASK_EXPIRED = auto()
    """The time to live has ended."""
    REPLY_UNREAD = auto()
    """The client did not read the reply with the outcome."""
    LEFT_BEHIND = auto()
    """The process stops, but the backend continues: another process will follow the backend's task."""


CallEvent = ResultArrived | ErrorArrived | ServerRemoved | Stopping | ProgressReported | StatusReported | BareEvent


class CallEffect(Enum):
    """An action for the caller of `step`."""

    RELEASE_WAITER = auto()
    """Return from the waiting tool."""
    CREATE_TASK = auto()
    """Create a task record, which the caller can request."""
    FINISH_TASK = auto()
    """Record the outcome in the task."""
    CANCEL_TASK = auto()
    EXPIRE_TASK = auto()
    CANCEL_RUNNER = auto()
    """Cancel the request, and notify the backend."""
    LEAVE_FLIGHT = auto()
    """Abandon the call: release the waiters of its task, and withdraw its questions."""
    FORWARD_PROGRESS = auto()
    """Report the progress to the waiting tool."""
    RECORD_PROGRESS = auto()
    """Record the progress in the task."""
    RECORD_STATUS = auto()
    """Record the status in the task."""
    LEAVE_RUNNER = auto()
    """Stop polling without a message to the backend, and release the waiters of the task."""


Step = tuple[CallState, tuple[CallEffect, ...]]
_E = CallEffect
_NOTHING: tuple[CallEffect, ...] = ()
_RETURN = (_E.RELEASE_WAITER, _E.LEAVE_FLIGHT)
_ABORT = (_E.RELEASE_WAITER, _E.CANCEL_RUNNER, _E.LEAVE_FLIGHT)
_PROMOTE = (_E.CREATE_TASK, _E.RELEASE_WAITER)


def step(state: CallState, event: CallEvent) -> Step:
    """Return the next state and the effects, in order. A late event changes nothing."""
    stage = state.stage
    if stage is CallStage.WAITING:
        return _step_waiting(state, event)
    if stage is CallStage.PROMOTED:
        return _step_promoted(state, event)
    if event is BareEvent.REPLY_UNREAD and stage is CallStage.FINISHED and not state.has_task:
        return state._replace(has_task=True), (_E.CREATE_TASK, _E.FINISH_TASK)
    return state, _NOTHING


def _step_waiting(state: CallState, event: CallEvent) -> Step:
    match event:
        case ResultArrived(outcome) | ErrorArrived(outcome):
            return _finished(state, outcome), _RETURN
        case ServerRemoved(error) | Stopping(error):
            return _finished(state, error), _ABORT
        case ProgressReported(progress):
            return state._replace(progress=progress), (_E.FORWARD_PROGRESS,)
        case StatusReported(message):
            return state._replace(message=message), _NOTHING
        case BareEvent.CANCEL_REQUESTED | BareEvent.WAIT_CANCELLED:
            return _cancelled(state), _ABORT
        case BareEvent.RUNNER_CANCELLED:
            return _cancelled(state), _RETURN
        case BareEvent.PATIENCE_OVER | BareEvent.CLIENT_GONE:
            return _promoted(state), _PROMOTE
        case BareEvent.QUESTION_ASKED if not state.waits_for_answers:
            return _promoted(state), _PROMOTE
    return state, _NOTHING


def _step_promoted(state: CallState, event: CallEvent) -> Step:
    match event:
        case ResultArrived(outcome) | ErrorArrived(outcome):
            return _finished(state, outcome), (_E.FINISH_TASK, _E.LEAVE_FLIGHT)
        case ServerRemoved(error) | Stopping(error):
            return _finished(state, error), (_E.FINISH_TASK, _E.CANCEL_RUNNER, _E.LEAVE_FLIGHT)
        case ProgressReported(progress):
            return state._replace(progress=progress), (_E.RECORD_PROGRESS,)
        case StatusReported(message):
            return state._replace(message=message), (_E.RECORD_STATUS,)
        case BareEvent.LEFT_BEHIND:
            CALL.check(state.stage, CallStage.LEFT)
            return state._replace(stage=CallStage.LEFT), (_E.LEAVE_RUNNER,)
        case BareEvent.CANCEL_REQUESTED:
            return _cancelled(state), (_E.CANCEL_TASK, _E.CANCEL_RUNNER, _E.LEAVE_FLIGHT)
        case BareEvent.RUNNER_CANCELLED:
            return _cancelled(state), (_E.CANCEL_TASK, _E.LEAVE_FLIGHT)
        case BareEvent.TASK_EXPIRED:
            return _cancelled(state), (_E.EXPIRE_TASK, _E.CANCEL_RUNNER, _E.LEAVE_FLIGHT)
    return state, _NOTHING


def _finished(state: CallState, outcome: JsonObject | EmceepeeError) -> CallState:
    CALL.check(state.stage, CallStage.FINISHED)
    return CallState(CallStage.FINISHED, outcome, state.has_task, state.waits_for_answers, state.progress)


def _promoted(state: CallState) -> CallState:
    CALL.check(state.stage, CallStage.PROMOTED)
    return state._replace(stage=CallStage.PROMOTED, has_task=True)


def _cancelled(state: CallState) -> CallState:
    CALL.check(state.stage, CallStage.CANCELLED)
    return state._replace(stage=CallStage.CANCELLED)
