"""Three replicas on one Redis under the load of sixteen callers, while any of them is killed, paused or stopped.

`make soak` does it for fifteen minutes. EMCEEPEE_CHAOS_SEED repeats the faults of a run.
"""

from pathlib import Path

import pytest

from support.faults.chaos import Chaos, chaos_seed, run_chaos
from support.faults.chaos_schedule import random_schedule
from support.matrix import matrix

SHORT_SECONDS, LONG_SECONDS = 20, 120
LEAST_IN_LONG_RUN = 50  # of each kind of action

pytestmark = [pytest.mark.alone, pytest.mark.timeout(600)]


@pytest.mark.parametrize("seconds", matrix([SHORT_SECONDS, LONG_SECONDS], representatives=[SHORT_SECONDS]))
async def test_faults_in_replicas_lose_nothing_run_nothing_twice_and_leave_no_caller_waiting(
    seconds: int, tmp_path: Path
) -> None:
    seed = chaos_seed()
    schedule = random_schedule(seed, seconds=seconds, replicas=3)
    outcome = await run_chaos(tmp_path, Chaos(schedule=schedule, seed=seed))
    assert not outcome.findings.found, str(outcome.findings)
    done = ("calls", "tasks completed", "timers", "notifications promised", "questions answered", "streams cut")
    least = LEAST_IN_LONG_RUN * seconds / LONG_SECONDS
    assert min(outcome.counts[what] for what in done) > least, outcome.counts
