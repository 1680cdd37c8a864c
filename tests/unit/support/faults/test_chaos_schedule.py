"""Random faults: a seed always gives the same ones, and at least one replica keeps running."""

import pytest

from support.faults.chaos_schedule import PAUSE_SECONDS, WEIGHTS, PlannedFault, random_schedule
from support.faults.timeline import STORE, FaultKind


def test_a_chaos_schedule_depends_only_on_its_seed() -> None:
    one, again, other = (random_schedule(seed, seconds=120, replicas=3) for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize("seed", range(20))
def test_a_chaos_schedule_contains_every_kind_of_fault_within_two_minutes(seed: int) -> None:
    faults = random_schedule(seed, seconds=120, replicas=3)
    assert {fault.kind for fault in faults} == set(WEIGHTS)
    assert max(fault.at + fault.seconds for fault in faults) < 120
    pauses = [fault.seconds for fault in faults if fault.kind is FaultKind.PAUSE]
    assert all(PAUSE_SECONDS[0] <= seconds <= PAUSE_SECONDS[1] for seconds in pauses)


@pytest.mark.parametrize("seed", range(20))
def test_a_chaos_schedule_never_has_two_faults_on_one_target_or_on_all_replicas(seed: int) -> None:
    faults = random_schedule(seed, seconds=600, replicas=3)
    for fault in faults:
        concurrent = [other.target for other in faults if _is_on(other, fault.at)]
        assert len(concurrent) == len(set(concurrent))
        assert len(set(concurrent) - {STORE}) < 3


def _is_on(fault: PlannedFault, moment: float) -> bool:
    return fault.at <= moment <= fault.at + fault.seconds
