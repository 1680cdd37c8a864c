"""The states of an elicitation and of a sampling request."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from emceepee.state.events import EventType
from emceepee.state.machine import ForbiddenMove
from emceepee.state.question import (
    ELICITATION,
    SAMPLING,
    ElicitationStatus,
    Gone,
    Question,
    QuestionKind,
    SamplingStatus,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
Verb = Callable[[Question], Question]
ELICITATION_VERBS: dict[ElicitationStatus, list[Verb]] = {
    ElicitationStatus.PENDING: [],
    ElicitationStatus.ACCEPTED: [lambda question: question.answered("accept")],
    ElicitationStatus.DECLINED: [lambda question: question.answered("decline")],
    ElicitationStatus.CANCELLED: [
        lambda question: question.answered("cancel"),
        lambda question: question.gone(Gone.CANCELLED),
    ],
    ElicitationStatus.EXPIRED: [lambda question: question.gone(Gone.TIMEOUT)],
    ElicitationStatus.REJECTED: [lambda question: question.gone(Gone.DISCONNECTED)],
    ElicitationStatus.WITHDRAWN: [lambda question: question.gone(Gone.WITHDRAWN)],
}
SAMPLING_VERBS: dict[SamplingStatus, list[Verb]] = {
    SamplingStatus.PENDING: [],
    SamplingStatus.COMPLETED: [lambda question: question.answered()],
    SamplingStatus.CANCELLED: [lambda question: question.gone(Gone.CANCELLED)],
    SamplingStatus.EXPIRED: [lambda question: question.gone(Gone.TIMEOUT)],
    SamplingStatus.REJECTED: [lambda question: question.gone(Gone.DISCONNECTED)],
    SamplingStatus.WITHDRAWN: [lambda question: question.gone(Gone.WITHDRAWN)],
}


def a_question(kind: QuestionKind, status: ElicitationStatus | SamplingStatus) -> Question:
    return Question(
        request_id="q",
        server="one",
        kind=kind,
        params={"message": "who?"},
        created_at=NOW,
        expires_at=NOW + timedelta(minutes=10),
        status=status,
    )


def check_moves(question: Question, verbs: list[Verb], target: str, *, allowed: bool) -> None:
    before = a_question(question.kind, question.status)
    for verb in verbs:
        if allowed:
            assert verb(question).status == target
        else:
            with pytest.raises(ForbiddenMove):
                verb(question)
    assert question == before


@pytest.mark.parametrize(("source", "target"), list(product(ElicitationStatus, ElicitationStatus)))
def test_an_elicitation_leaves_pending_once_and_never_moves_again(
    source: ElicitationStatus, target: ElicitationStatus
) -> None:
    allowed = source is ElicitationStatus.PENDING and target is not ElicitationStatus.PENDING
    assert ELICITATION.allows(source, target) is allowed
    check_moves(a_question(QuestionKind.ELICITATION, source), ELICITATION_VERBS[target], target, allowed=allowed)


@pytest.mark.parametrize(("source", "target"), list(product(SamplingStatus, SamplingStatus)))
def test_a_sampling_request_leaves_pending_once_and_never_moves_again(
    source: SamplingStatus, target: SamplingStatus
) -> None:
    allowed = source is SamplingStatus.PENDING and target is not SamplingStatus.PENDING
    assert SAMPLING.allows(source, target) is allowed
    check_moves(a_question(QuestionKind.SAMPLING, source), SAMPLING_VERBS[target], target, allowed=allowed)


def test_each_kind_of_question_starts_pending_and_has_its_own_events() -> None:
    elicitation, sampling = QuestionKind.ELICITATION, QuestionKind.SAMPLING
    assert (elicitation.first_status, elicitation.asked_event, elicitation.gone_event) == (
        ElicitationStatus.PENDING,
        EventType.ELICITATION_REQUEST,
        EventType.ELICITATION_EXPIRED,
    )
    assert (sampling.first_status, sampling.asked_event, sampling.gone_event) == (
        SamplingStatus.PENDING,
        EventType.SAMPLING_REQUEST,
        EventType.SAMPLING_EXPIRED,
    )


def test_an_unknown_question_action_is_rejected() -> None:
    with pytest.raises(KeyError):
        a_question(QuestionKind.ELICITATION, ElicitationStatus.PENDING).answered("perhaps")
