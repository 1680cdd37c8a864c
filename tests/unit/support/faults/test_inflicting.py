from itertools import pairwise
from typing import Any, cast

from support.faults.chaos_schedule import PlannedFault
from support.faults.inflicting import Inflicter
from support.faults.timeline import FaultKind
from support.faults.world import World


class NoProcess:
    """Counts the faults that are inflicted on it."""

    def __init__(self) -> None:
        self.done: list[str] = []

    def pause(self) -> None:
        self.done.append("pause")

    def resume(self) -> None:
        self.done.append("resume")


async def test_the_last_running_process_gets_no_fault_until_another_one_runs() -> None:
    world = World(cast(Any, [NoProcess(), NoProcess()]), {})
    pauses = [PlannedFault(at=0.0, kind=FaultKind.PAUSE, target=target, seconds=0.02) for target in (0, 1, 0)]
    await Inflicter(world, None).carry_out(pauses)
    assert world.counts["pauses"] == 3
    faults = world.timeline.faults
    assert all(one.ended <= other.began for one, other in pairwise(faults))
    assert world.findings.found == []
