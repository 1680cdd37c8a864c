"""Killed without a word, again and again, and started again on the same state: nothing is lost, and nothing runs twice.

`make matrix` does it a dozen times, and `make soak` fifty times.
"""

from pathlib import Path

import pytest

from support.faults.kills import kills_under_load
from support.matrix import matrix

FEW, MANY = 4, 12
LEAST_OF_MANY = 10  # of each kind of action


@pytest.mark.parametrize("kills", matrix([FEW, MANY], representatives=[FEW]))
async def test_kills_under_the_load_of_eight_callers_lose_nothing_and_run_nothing_twice(
    kills: int, tmp_path: Path
) -> None:
    counts = await kills_under_load(tmp_path, kills)
    actions = ("calls", "tasks completed", "timers", "notifications promised")
    assert min(counts[each] for each in actions) > LEAST_OF_MANY * kills / MANY
