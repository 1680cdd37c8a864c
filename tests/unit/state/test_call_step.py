"""Each event in each state of a call: any combination has exactly one outcome."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.errors import EmceepeeError
from emceepee.state.call_step import (
    CALL,
    WAITING,
    WAITING_FOR_ANSWERS,
    BareEvent,
    CallEffect,
    CallEvent,
    CallStage,
    CallState,
    ErrorArrived,
    ProgressReported,
    ResultArrived,
    ServerRemoved,
    StatusReported,
    Stopping,
    step,
)
from emceepee.state.machine import ForbiddenMove
from emceepee.wire.json_types import JsonObject

S, B, E = CallStage, BareEvent, CallEffect
ALLOWED: dict[CallStage, set[CallStage]] = {
    S.WAITING: {S.PROMOTED, S.FINISHED, S.CANCELLED},
    S.PROMOTED: {S.FINISHED, S.CANCELLED, S.LEFT},
    S.FINISHED: set(),
    S.CANCELLED: set(),
    S.LEFT: set(),
}
RESULT: JsonObject = {"content": []}
REFUSED, REMOVED, STOPPED = EmceepeeError("refused"), EmceepeeError("removed"), EmceepeeError("stopping")
OUTCOMES: list[CallEvent] = [ResultArrived(RESULT), ErrorArrived(REFUSED)]
ABORTS: list[CallEvent] = [ServerRemoved(REMOVED), Stopping(STOPPED)]
CANCELS: list[CallEvent] = [B.CANCEL_REQUESTED, B.WAIT_CANCELLED, B.RUNNER_CANCELLED]
PROMOTIONS: list[CallEvent] = [B.PATIENCE_OVER, B.CLIENT_GONE, B.QUESTION_ASKED]
EVENTS: list[CallEvent] = [*OUTCOMES, *ABORTS, ProgressReported({"progress": 1}), StatusReported("at it"), *BareEvent]
TASK_ENDS = {E.FINISH_TASK, E.CANCEL_TASK, E.EXPIRE_TASK}


def after(*events: CallEvent, begin: CallState = WAITING) -> CallState:
    for event in events:
        begin, _ = step(begin, event)
    return begin


def reachable() -> list[CallState]:
    """Return every state that some events lead to."""
    found, new = list[CallState](), [WAITING, WAITING_FOR_ANSWERS]
    while new:
        found += new
        following = [after(event, begin=state) for state, event in product(new, EVENTS)]
        new = [state for index, state in enumerate(following) if state not in found and state not in following[:index]]
    return found


STATES = reachable()


class Account:
    """Plays events, and checks that each step is allowed and nothing is done twice."""

    def __init__(self, state: CallState) -> None:
        self.state = state
        self.done: list[CallEffect] = []
        if state.stage is not S.WAITING:
            self.done.append(E.RELEASE_WAITER)
        if state.has_task:
            self.done.append(E.CREATE_TASK)
        if state.stage is S.LEFT:
            self.done.append(E.LEAVE_RUNNER)
        elif state.has_ended:
            self.done += [E.LEAVE_FLIGHT, *([E.FINISH_TASK] if state.has_task else [])]

    def play(self, event: CallEvent) -> None:
        before = self.state
        self.state, effects = step(before, event)
        self.done += effects
        if self.state.stage is not before.stage:
            CALL.check(before.stage, self.state.stage)
        if before.has_ended:
            assert (self.state.stage, self.state.outcome) == (before.stage, before.outcome)
            assert not set(effects) & {E.LEAVE_FLIGHT, E.LEAVE_RUNNER, E.CANCEL_RUNNER, E.RELEASE_WAITER}
        self.check()

    def check(self) -> None:
        state, done = self.state, self.done
        assert done.count(E.RELEASE_WAITER) == (state.stage is not S.WAITING), "the tool returns once"
        is_left = state.stage is S.LEFT
        assert done.count(E.LEAVE_FLIGHT) == (state.has_ended and not is_left), "the call ends once"
        assert done.count(E.LEAVE_RUNNER) == is_left, "or it is left once"
        assert done.count(E.CREATE_TASK) == state.has_task, "there is one task at most"
        ends = [effect for effect in done if effect in TASK_ENDS]
        assert len(ends) == (state.has_task and state.has_ended and not is_left), "a task ends once, with its call"
        assert done.count(E.CANCEL_RUNNER) <= 1
        assert (state.outcome is not None) is (state.stage is S.FINISHED)
        for effect in ends:
            assert done.index(E.CREATE_TASK) < done.index(effect)


@pytest.mark.parametrize(("source", "target"), list(product(S, S)), ids=str)
def test_a_call_makes_only_the_moves_in_its_table(source: CallStage, target: CallStage) -> None:
    if target in ALLOWED[source]:
        CALL.check(source, target)
    else:
        with pytest.raises(ForbiddenMove):
            CALL.check(source, target)


def test_every_call_stage_and_effect_is_reached_by_some_event() -> None:
    assert {state.stage for state in STATES} == set(S)
    assert {effect for state, event in product(STATES, EVENTS) for effect in step(state, event)[1]} == set(E)


@pytest.mark.parametrize("state", STATES, ids=lambda state: f"{state.stage}")
def test_every_pair_of_events_in_every_call_state_has_exactly_one_outcome(state: CallState) -> None:
    for first, second in product(EVENTS, EVENTS):
        account = Account(state)
        account.play(first)
        account.play(second)


@given(events=st.lists(st.sampled_from(EVENTS), max_size=12), begin=st.sampled_from([WAITING, WAITING_FOR_ANSWERS]))
def test_a_call_has_exactly_one_outcome_for_any_events_in_any_order(events: list[CallEvent], begin: CallState) -> None:
    account = Account(begin)
    for event in events:
        account.play(event)


@pytest.mark.parametrize("event", OUTCOMES)
def test_the_outcome_of_a_waiting_call_is_returned_without_a_task(event: ResultArrived | ErrorArrived) -> None:
    state, effects = step(WAITING, event)
    assert state == CallState(S.FINISHED, event.outcome)
    assert effects == (E.RELEASE_WAITER, E.LEAVE_FLIGHT)


@pytest.mark.parametrize("event", PROMOTIONS)
def test_a_call_is_promoted_once_and_its_task_exists_when_the_tool_returns(event: CallEvent) -> None:
    state, effects = step(WAITING, event)
    assert (state.stage, state.has_task, effects) == (S.PROMOTED, True, (E.CREATE_TASK, E.RELEASE_WAITER))
    for again in PROMOTIONS:
        assert step(state, again) == (state, ())


def test_a_call_that_waits_for_answers_is_promoted_by_anything_but_a_question() -> None:
    assert step(WAITING_FOR_ANSWERS, B.QUESTION_ASKED) == (WAITING_FOR_ANSWERS, ())
    assert step(WAITING_FOR_ANSWERS, B.PATIENCE_OVER)[0].stage is S.PROMOTED


@pytest.mark.parametrize("event", OUTCOMES)
def test_the_outcome_of_a_promoted_call_goes_to_its_task(event: ResultArrived | ErrorArrived) -> None:
    state, effects = step(after(B.PATIENCE_OVER), event)
    assert (state.stage, state.outcome, effects) == (S.FINISHED, event.outcome, (E.FINISH_TASK, E.LEAVE_FLIGHT))


@pytest.mark.parametrize("event", ABORTS)
def test_a_call_fails_at_once_and_its_runner_is_cancelled_when_its_server_is_gone(
    event: ServerRemoved | Stopping,
) -> None:
    state, effects = step(WAITING, event)
    assert (state.outcome, effects) == (event.error, (E.RELEASE_WAITER, E.CANCEL_RUNNER, E.LEAVE_FLIGHT))
    state, effects = step(after(B.PATIENCE_OVER), event)
    assert (state.outcome, effects) == (event.error, (E.FINISH_TASK, E.CANCEL_RUNNER, E.LEAVE_FLIGHT))


@pytest.mark.parametrize("event", CANCELS)
def test_a_waiting_caller_is_released_when_its_call_is_cancelled(event: CallEvent) -> None:
    state, effects = step(WAITING, event)
    assert (state.stage, effects[0]) == (S.CANCELLED, E.RELEASE_WAITER)
    assert (E.CANCEL_RUNNER in effects) is (event is not B.RUNNER_CANCELLED)


def test_cancelling_only_the_wait_leaves_the_task_running() -> None:
    promoted = after(B.PATIENCE_OVER)
    assert step(promoted, B.WAIT_CANCELLED) == (promoted, ())
    assert step(promoted, B.CANCEL_REQUESTED)[1] == (E.CANCEL_TASK, E.CANCEL_RUNNER, E.LEAVE_FLIGHT)
    assert step(promoted, B.TASK_EXPIRED)[1] == (E.EXPIRE_TASK, E.CANCEL_RUNNER, E.LEAVE_FLIGHT)


def test_an_outcome_whose_reply_was_not_read_is_stored_once_as_a_finished_task() -> None:
    state, effects = step(after(ResultArrived(RESULT)), B.REPLY_UNREAD)
    assert (state.has_task, state.outcome, effects) == (True, RESULT, (E.CREATE_TASK, E.FINISH_TASK))
    assert step(state, B.REPLY_UNREAD) == (state, ())


@pytest.mark.parametrize("stage", [WAITING, after(B.PATIENCE_OVER), after(B.CANCEL_REQUESTED)])
def test_an_unread_reply_without_an_outcome_stores_nothing(stage: CallState) -> None:
    assert step(stage, B.REPLY_UNREAD) == (stage, ())


def test_progress_goes_to_the_waiting_tool_or_to_the_task_and_is_dropped_after_the_end() -> None:
    report = ProgressReported({"progress": 1})
    assert step(WAITING, report) == (CallState(progress={"progress": 1}), (E.FORWARD_PROGRESS,))
    assert step(after(B.PATIENCE_OVER), report)[1] == (E.RECORD_PROGRESS,)
    finished = after(ResultArrived(RESULT))
    assert step(finished, report) == (finished, ())
    assert after(report, B.PATIENCE_OVER).progress == {"progress": 1}


def test_a_backend_status_message_reaches_our_task_even_if_it_is_created_later() -> None:
    assert after(StatusReported("at it"), B.PATIENCE_OVER).message == "at it"
    assert step(after(B.PATIENCE_OVER), StatusReported("at it"))[1] == (E.RECORD_STATUS,)


def test_a_call_that_is_left_behind_ends_without_affecting_its_task() -> None:
    left, effects = step(after(B.PATIENCE_OVER), B.LEFT_BEHIND)
    assert (left.stage, left.has_ended, effects) == (S.LEFT, True, (E.LEAVE_RUNNER,))
    assert step(left, B.RUNNER_CANCELLED) == (left, ())
