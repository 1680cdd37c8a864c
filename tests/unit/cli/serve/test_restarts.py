"""A worker that exits is restarted with growing pauses, and never if its command is invalid."""

import signal
from itertools import accumulate

import pytest

from emceepee.cli.serve.restarts import (
    CANNOT_START,
    FIRST_PAUSE,
    LONGEST_PAUSE,
    STEADY_SECONDS,
    WorkerEnd,
    is_hopeless,
    pause_before_restart,
)


def end(code: int = -signal.SIGKILL, *, ran_seconds: float = 1.0, was_ready: bool = True) -> WorkerEnd:
    return WorkerEnd(code=code, ran_seconds=ran_seconds, was_ready=was_ready)


def test_the_restart_pause_doubles_up_to_a_limit_while_workers_exit_early() -> None:
    pauses = list(accumulate(range(8), lambda last, _: pause_before_restart(end(), last), initial=FIRST_PAUSE))
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0])
    assert pauses[-1] == LONGEST_PAUSE


@pytest.mark.parametrize("last", [None, 0.1, 5.0])
def test_the_first_restart_pause_and_one_after_a_steady_run_are_short(last: float | None) -> None:
    assert pause_before_restart(end(ran_seconds=STEADY_SECONDS), last) == FIRST_PAUSE
    assert pause_before_restart(end(), None) == FIRST_PAUSE


def test_a_usage_error_of_a_worker_is_fatal_only_during_startup() -> None:
    mistaken = end(CANNOT_START, was_ready=False)
    assert is_hopeless(mistaken, all_were_ready=False)
    assert not is_hopeless(mistaken, all_were_ready=True)


@pytest.mark.parametrize("code", [0, 1, -signal.SIGTERM, -signal.SIGKILL])
def test_any_other_exit_of_a_worker_leads_to_a_restart(code: int) -> None:
    assert not is_hopeless(end(code, was_ready=False), all_were_ready=False)
    assert not is_hopeless(end(CANNOT_START, was_ready=True), all_were_ready=False)
