"""Planted bugs break a rule of the fault tests. Otherwise the fault tests would prove nothing."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from support.faults.chaos import Chaos, run_chaos
from support.faults.chaos_schedule import PlannedFault
from support.faults.findings import Rule
from support.faults.timeline import FaultKind
from support.programs import hoarding_emceepee, overconfident_emceepee, unfenced_emceepee

pytestmark = [pytest.mark.alone, pytest.mark.timeout(180)]

PAUSES = [PlannedFault(at=1 + 6 * number, kind=FaultKind.PAUSE, target=number, seconds=4) for number in range(3)]
PAUSE_AND_STORE = [
    PlannedFault(at=1, kind=FaultKind.PAUSE, target=0, seconds=5),
    PlannedFault(at=5, kind=FaultKind.STORE_PAUSE, seconds=5),
]
STOPS = [PlannedFault(at=1 + 8 * number, kind=FaultKind.STOP, target=number, seconds=8) for number in range(2)]


async def broken_rules(
    folder: Path, module: str, schedule: Sequence[PlannedFault], *, lease: float = 2.0, is_short: bool = True
) -> set[Rule]:
    chaos = Chaos(schedule=schedule, seed=1, module=module, lease=lease, ends_with_first_finding=is_short)
    outcome = await run_chaos(folder, chaos)
    return set(outcome.findings.rules)


async def test_without_fencing_a_paused_replica_changes_sessions_that_another_has_taken_over(tmp_path: Path) -> None:
    assert Rule.NO_STALE_COMMITS in await broken_rules(tmp_path, unfenced_emceepee.__name__, PAUSES)


@pytest.mark.matrix
async def test_a_replica_that_trusts_its_lease_too_long_reports_events_that_are_not_stored(tmp_path: Path) -> None:
    """When the replica resumes, the store that would report the takeover is unavailable."""
    broken = await broken_rules(tmp_path, overconfident_emceepee.__name__, PAUSE_AND_STORE, is_short=False)
    assert broken & {Rule.EVENTS_KEPT, Rule.TIMERS_ONCE, Rule.TASKS_ONCE, Rule.PROMISES_KEPT}


@pytest.mark.matrix
async def test_a_stopping_replica_that_hands_nothing_over_makes_callers_wait(tmp_path: Path) -> None:
    """No other replica may take its sessions before its lease expires."""
    assert Rule.SMOOTH_STOPS in await broken_rules(tmp_path, hoarding_emceepee.__name__, STOPS, lease=6)
