"""The long versions: `make soak`. Not collected by default, because the name does not begin with test_."""

import os
from pathlib import Path

import pytest

from support.backends.counting_http import Era
from support.faults.chaos import Chaos, chaos_seed, run_chaos
from support.faults.chaos_schedule import random_schedule
from support.faults.kills import kills_under_load
from support.faults.mixed_load import mixed_load
from support.faults.restarts import restarts_under_load
from support.faults.session_waves import SESSIONS, waves_of_sessions
from support.figures import record_figure

pytestmark = pytest.mark.timeout(1800)

WARM_UP_SECONDS = 180  # until caches, pools and the allocator have their size
NOISE_KB = 8192
NOISE_BLOCKS = 20_000  # of some 700,000


async def test_a_thousand_sessions_abandoned_in_waves_leave_no_process() -> None:
    assert await waves_of_sessions(20) == 20 * 2 * SESSIONS


@pytest.mark.parametrize("era", ["legacy", "2026-07-28"])
async def test_a_hundred_backend_restarts_under_load_lose_nothing_and_run_nothing_twice(era: Era) -> None:
    outcomes = await restarts_under_load(era, restarts=100)
    record_figure(f"{era}: {outcomes['ok']} calls succeeded, {outcomes['failed']} failed with a clear error")
    assert outcomes["ok"] > 100


async def test_fifty_kills_under_the_load_of_eight_callers_lose_nothing_and_run_nothing_twice(tmp_path: Path) -> None:
    counts = await kills_under_load(tmp_path, 50)
    assert min(counts["calls"], counts["tasks completed"], counts["timers"], counts["notifications promised"]) > 50


async def test_fifteen_minutes_of_faults_in_three_replicas_and_their_redis_lose_nothing(tmp_path: Path) -> None:
    """CHAOS_MINUTES sets another duration."""
    seed, minutes = chaos_seed(), float(os.environ.get("CHAOS_MINUTES", "15"))
    schedule = random_schedule(seed, seconds=60 * minutes, replicas=3)
    outcome = await run_chaos(tmp_path, Chaos(schedule=schedule, seed=seed))
    assert not outcome.findings.found, str(outcome.findings)


async def test_ten_minutes_of_combined_load_with_faults_leave_nothing_behind() -> None:
    """SOAK_MINUTES sets another duration. The measurements are printed; a leak shows as a slope."""
    minutes = float(os.environ.get("SOAK_MINUTES", "10"))
    async with mixed_load(seed=1) as load:
        await load.run(WARM_UP_SECONDS)
        before = await load.rest()
        load.samples.clear()
        await load.run(60 * minutes)
        whole, late = load.slope(0), load.slope(0.5)
        after = await load.rest()
    record_figure(f"before {before}")
    record_figure(f"after {after}")
    record_figure(f"memory: {whole:+.0f} kB per minute, in the second half {late:+.0f}; outcomes {dict(load.outcomes)}")
    assert (after.processes, abs(after.asyncio_tasks - before.asyncio_tasks) <= 5) == (before.processes, True)
    assert abs(after.descriptors - before.descriptors) <= 5
    assert after.memory_blocks - before.memory_blocks <= NOISE_BLOCKS
    assert after.resident_kb - before.resident_kb <= NOISE_KB
