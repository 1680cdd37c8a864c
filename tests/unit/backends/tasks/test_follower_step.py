"""Decisions about a backend task in both eras, without any waiting."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.backends.tasks.follower_step import (
    FIRST_RETRY,
    LONGEST_INTERVAL,
    LONGEST_RETRY,
    MOST_REFUSALS,
    RESULT_SECONDS,
    AskQuestion,
    CompleteCall,
    Decision,
    Event,
    FailCall,
    FetchResult,
    FollowerState,
    Inquiry,
    NoResultReason,
    PollAfter,
    QuestionAnswered,
    ReportStatus,
    StatusReceived,
    TaskRequestLost,
    TaskRequestRefused,
    TaskResultArrived,
    WithdrawQuestion,
    step,
)
from emceepee.backends.tasks.task_messages import RELATED_TASK, RemoteStatus, Snapshot
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND

MODERN, HANDSHAKE = FollowerState(is_modern=True), FollowerState(is_modern=False)
RESULT: JsonObject = {"content": [{"type": "text", "text": "done"}]}
QUESTION: JsonObject = {"method": "elicitation/create", "params": {"message": "?"}}
BOTH = pytest.mark.parametrize("begin", [MODERN, HANDSHAKE], ids=["2026-07-28", "2025-11-25"])


def told(status: str = "working", *, is_pushed: bool = False, **facts: Any) -> StatusReceived:
    return StatusReceived(Snapshot(status=RemoteStatus(status), **facts), is_pushed)


def refused(code: int, inquiry: Inquiry = Inquiry.STATUS) -> TaskRequestRefused:
    return TaskRequestRefused(inquiry, {"code": code, "message": "no"})


def play(begin: FollowerState, *events: Event) -> tuple[FollowerState, list[Decision]]:
    """Return the final state and the decisions of the last event."""
    decisions: list[Decision] = []
    for event in events:
        begin, decisions = step(begin, event)
    return begin, decisions


def pauses(begin: FollowerState, *events: Event) -> list[float]:
    """Return the pauses before each poll."""
    found: list[float] = []
    for event in events:
        begin, decisions = step(begin, event)
        found += [decision.seconds for decision in decisions if isinstance(decision, PollAfter)]
    return found


# Poll intervals.


@BOTH
def test_task_polls_start_fast_and_slow_down_to_the_interval_of_the_backend(begin: FollowerState) -> None:
    assert pauses(begin, *[told(interval=0.1)] * 5) == [0.02, 0.04, 0.08, 0.1, 0.1]


@BOTH
def test_task_polls_without_an_interval_settle_at_one_second_and_are_never_too_frequent(
    begin: FollowerState,
) -> None:
    assert pauses(begin, *[told()] * 9)[-2:] == [1.0, 1.0]
    assert pauses(begin, *[told(interval=0.001)] * 9)[-1] == 0.05
    assert pauses(begin, *[told(interval=1e9)] * 40)[-1] == LONGEST_INTERVAL


def test_a_backend_that_pushes_task_status_is_polled_rarely_until_its_link_is_lost() -> None:
    state, decisions = play(HANDSHAKE, told(interval=1.0), told(interval=1.0, is_pushed=True))
    assert decisions == [PollAfter(5.0)]
    assert step(state, told(interval=1.0))[1] == [PollAfter(5.0)]
    state, _ = step(state, TaskRequestLost(Inquiry.STATUS))
    assert step(state, told(interval=1.0))[1] == [PollAfter(0.02)]


@BOTH
def test_a_task_status_is_reported_only_when_it_changes(begin: FollowerState) -> None:
    state, decisions = step(begin, told(message="digging"))
    assert decisions == [ReportStatus(), PollAfter(0.02)]
    assert step(state, told(message="digging"))[1] == [PollAfter(0.04)]


# The end of a task.


def test_in_2026_07_28_the_task_status_contains_the_result_or_the_error() -> None:
    assert play(MODERN, told("completed", result=RESULT))[1] == [ReportStatus(), CompleteCall(RESULT)]
    error: JsonObject = {"code": -32000, "message": "boom"}
    assert play(MODERN, told("failed", error=error))[1] == [ReportStatus(), FailCall(NoResultReason.ERROR, error)]
    assert play(MODERN, told("completed"))[1] == [ReportStatus(), FailCall(NoResultReason.BROKEN)]


@pytest.mark.parametrize("status", ["completed", "failed"])
def test_in_2025_11_25_the_task_result_is_fetched_and_marks_whether_it_is_an_error(status: str) -> None:
    state, decisions = step(HANDSHAKE, told(status))
    assert decisions == [ReportStatus(), FetchResult(), PollAfter(RESULT_SECONDS)]
    result = {**RESULT, "isError": True}
    marked = {**result, "_meta": {RELATED_TASK: {"taskId": "t"}}}
    assert step(state, TaskResultArrived(marked))[1] == [CompleteCall(result)]


def test_an_error_in_response_to_the_result_request_is_the_error_of_the_call() -> None:
    error: JsonObject = {"code": INVALID_PARAMS, "message": "no"}
    assert play(HANDSHAKE, told("failed"), TaskRequestRefused(Inquiry.RESULT, error))[1] == [
        FailCall(NoResultReason.ERROR, error)
    ]


def test_a_task_result_that_was_requested_early_is_requested_again_only_after_a_timeout() -> None:
    state, decisions = play(HANDSHAKE, told("input_required"), told("completed"))
    assert decisions == [ReportStatus(), PollAfter(RESULT_SECONDS)]
    assert step(state, told("completed"))[1] == [FetchResult(), PollAfter(RESULT_SECONDS)]


@BOTH
def test_a_task_that_the_backend_cancelled_has_failed(begin: FollowerState) -> None:
    assert play(begin, told("cancelled"))[1] == [ReportStatus(), FailCall(NoResultReason.CANCELLED)]


def test_a_task_status_older_than_the_final_one_changes_nothing() -> None:
    ended, _ = step(HANDSHAKE, told("completed", is_pushed=True))
    assert step(ended, told("working")) == (ended, [PollAfter(RESULT_SECONDS)])


@BOTH
def test_a_finished_follower_makes_no_more_decisions(begin: FollowerState) -> None:
    over, _ = step(begin, told("cancelled"))
    for event in (
        told("completed", result=RESULT),
        TaskRequestLost(Inquiry.STATUS),
        QuestionAnswered("k"),
        TaskResultArrived(RESULT),
    ):
        assert step(over, event) == (over, [])


# Questions of a task.


def test_in_2026_07_28_each_task_question_is_asked_once() -> None:
    asking = told("input_required", questions={"a": QUESTION, "b": QUESTION})
    state, decisions = step(MODERN, asking)
    assert decisions == [ReportStatus(), AskQuestion("a", QUESTION), AskQuestion("b", QUESTION), PollAfter(0.02)]
    state, decisions = play(state, QuestionAnswered("a"), asking)
    assert [type(decision) for decision in decisions] == [PollAfter]
    assert state.unanswered == {"b"}


def test_a_task_question_is_withdrawn_when_the_backend_drops_it_unanswered() -> None:
    asking = told("input_required", questions={"a": QUESTION, "b": QUESTION})
    assert WithdrawQuestion("b") in play(MODERN, asking, QuestionAnswered("a"), told("working"))[1]
    assert play(MODERN, asking, told("completed", result=RESULT))[1][:2] == [ReportStatus(), WithdrawQuestion("a")]
    assert WithdrawQuestion("a") not in play(MODERN, asking, QuestionAnswered("a"), told("working"))[1]


def test_in_2025_11_25_the_task_result_is_requested_early_to_receive_the_question() -> None:
    state, decisions = step(HANDSHAKE, told("input_required"))
    assert decisions == [ReportStatus(), FetchResult(), PollAfter(0.02)]
    assert FetchResult() not in step(state, told("input_required"))[1]
    state, _ = step(state, TaskRequestLost(Inquiry.RESULT))
    assert FetchResult() in step(state, told("input_required"))[1]


@BOTH
def test_a_task_is_polled_soon_after_an_answered_question(begin: FollowerState) -> None:
    assert pauses(begin, *[told(interval=5.0)] * 12, QuestionAnswered("a"))[-1] == 0.02


# Failures.


@BOTH
def test_task_polls_are_retried_with_growing_pauses_while_the_connection_is_lost(begin: FollowerState) -> None:
    found = pauses(begin, told(), *[TaskRequestLost(Inquiry.STATUS)] * 20, told())
    assert found[1:3] == [FIRST_RETRY, 2 * FIRST_RETRY]
    assert found[-2:] == [LONGEST_RETRY, 0.02]


@BOTH
def test_a_task_that_the_backend_does_not_know_has_failed(begin: FollowerState) -> None:
    assert step(begin, refused(INVALID_PARAMS))[1] == [
        FailCall(NoResultReason.FORGOTTEN, {"code": INVALID_PARAMS, "message": "no"})
    ]
    assert step(begin, refused(METHOD_NOT_FOUND))[1] == [
        FailCall(NoResultReason.NOT_OFFERED, {"code": METHOD_NOT_FOUND, "message": "no"})
    ]


@BOTH
def test_a_task_fails_after_several_other_errors_in_a_row(begin: FollowerState) -> None:
    stumbles = [refused(INTERNAL_ERROR)] * MOST_REFUSALS
    assert isinstance(play(begin, *stumbles)[1][0], PollAfter)
    assert isinstance(play(begin, *stumbles, told(), *stumbles)[1][0], PollAfter)
    assert play(begin, *stumbles, refused(INTERNAL_ERROR))[1] == [
        FailCall(NoResultReason.BROKEN, {"code": INTERNAL_ERROR, "message": "no"})
    ]


def test_a_task_result_refused_before_the_end_is_requested_again_when_the_status_says_it_is_complete() -> None:
    state, decisions = play(HANDSHAKE, told("input_required"), refused(INVALID_PARAMS, Inquiry.RESULT))
    assert decisions == [PollAfter(1.0)]
    assert FetchResult() in step(state, told("completed"))[1]


EVENTS: list[Event] = [
    *(told(status, result=RESULT, questions={"k": QUESTION}) for status in RemoteStatus),
    told(is_pushed=True),
    TaskResultArrived(RESULT),
    *(refused(code, inquiry) for code in (INTERNAL_ERROR, INVALID_PARAMS) for inquiry in Inquiry),
    *(TaskRequestLost(inquiry) for inquiry in Inquiry),
    QuestionAnswered("k"),
]


@given(events=st.lists(st.sampled_from(EVENTS), max_size=12), begin=st.sampled_from([MODERN, HANDSHAKE]))
def test_a_follower_always_plans_another_poll_until_it_ends_exactly_once(
    events: list[Event], begin: FollowerState
) -> None:
    ends = 0
    for event in events:
        begin, decisions = step(begin, event)
        ends += sum(isinstance(decision, CompleteCall | FailCall) for decision in decisions)
        assert ends == begin.is_over
        assert begin.is_over or any(isinstance(decision, PollAfter) for decision in decisions), event
