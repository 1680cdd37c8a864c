"""Faults by chance: the same again for the same seed, and always somebody left to ask."""

import pytest

from support.faults.chaos_schedule import PAUSE_SECONDS, WEIGHTS, PlannedFault, random_schedule
from support.faults.timeline import STORE, FaultKind


def test_a_seed_repeats_its_faults_and_another_has_others() -> None:
    one, again, other = (random_schedule(seed, seconds=120, replicas=3) for seed in (1, 1, 2))
    assert one == again != other


@pytest.mark.parametrize("seed", range(20))
def test_every_kind_comes_within_two_minutes_and_is_over_by_then(seed: int) -> None:
    faults = random_schedule(seed, seconds=120, replicas=3)
    assert {fault.kind for fault in faults} == set(WEIGHTS)
    assert max(fault.at + fault.seconds for fault in faults) < 120
    pauses = [fault.seconds for fault in faults if fault.kind is FaultKind.PAUSE]
    assert all(PAUSE_SECONDS[0] <= seconds <= PAUSE_SECONDS[1] for seconds in pauses)


@pytest.mark.parametrize("seed", range(20))
def test_nobody_suffers_two_faults_at_once_and_one_replica_none(seed: int) -> None:
    faults = random_schedule(seed, seconds=600, replicas=3)
    for fault in faults:
        concurrent = [other.target for other in faults if _is_on(other, fault.at)]
        assert len(concurrent) == len(set(concurrent))
        assert len(set(concurrent) - {STORE}) < 3


def _is_on(fault: PlannedFault, moment: float) -> bool:
    return fault.at <= moment <= fault.at + fault.seconds
