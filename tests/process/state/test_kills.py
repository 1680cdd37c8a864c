"""Killed without a word, again and again, and started again on the same state: nothing is lost, and nothing runs twice.

`make soak` does it fifty times.
"""

from pathlib import Path

from support.faults.kills import kills_under_load


async def test_a_dozen_kills_under_the_load_of_eight_callers_lose_nothing_and_run_nothing_twice(tmp_path: Path) -> None:
    counts = await kills_under_load(tmp_path, 12)
    assert min(counts["calls"], counts["tasks completed"], counts["timers"], counts["notifications promised"]) > 10
