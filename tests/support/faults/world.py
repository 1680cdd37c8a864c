"""The shared state of callers under faults: processes, backends, and findings."""

import asyncio
import itertools
import random
from collections import Counter
from collections.abc import Mapping, Sequence

from support.backends.counting_http import CountingBackend
from support.callers.restartable_process import RestartableProcess
from support.faults.findings import Findings
from support.faults.lateness import Lateness
from support.faults.timeline import FaultKind, Span, Timeline, moment
from support.waiting import eventually

NOTICED_AFTER = 1.5  # seconds: then the checks of a balancer have found out that a process stands still


class World:
    """Callers ask any of its processes, as if a balancer had chosen it.

    Times are seconds. `bound` limits an answer in addition to its call's own time, `at_once` does so while nothing
    is wrong, and `felt` is how long a fault has effects. `patience` limits a request to a paused process. After
    `recovery`, everything works again, even if several faults came one after the other.
    """

    bound = 60.0
    at_once = 60.0
    felt = 0.0
    patience = 5.0
    recovery = 60.0
    pause = 0.0
    """Between two steps of a caller, on average."""

    def __init__(self, processes: Sequence[RestartableProcess], backends: Mapping[str, CountingBackend]) -> None:
        self.processes, self.backends = processes, backends
        self.headers: dict[str, str] = {}  # of every request
        self.timeline, self.findings, self.lateness = Timeline(), Findings(), Lateness()
        self.counts: Counter[str] = Counter()
        self.out_of_service: set[int] = set()  # as a balancer knows it: killed, or about to stop
        self.steps = 0
        self.progressed = asyncio.Event()  # set with each step that a caller has made
        self.is_over = False
        self.slowest = 0.0  # seconds that an answer took, besides its call's own time
        self.requests: list[str] = []  # the outcome of each, to find the cause of a finding
        self._numbers = itertools.count(1)

    def new_id(self) -> str:
        return f"c{next(self._numbers)}"

    def note(self, number: int, asked: Span, what: str, outcome: str) -> None:
        """Record the outcome of a request to that process."""
        self.requests.append(f"{asked.began:.3f}-{asked.ended:.3f} at {number}: {what} -> {outcome}")

    def progress(self) -> None:
        self.steps += 1
        self.progressed.set()

    def teller(self, number: int) -> int | None:
        """Return the process, or None if its events may come from another process."""
        return number if len(self.processes) > 1 else None

    def number_of(self, process: RestartableProcess) -> int:
        return self.processes.index(process)

    async def choose(self, chance: random.Random, other_than: RestartableProcess | None = None) -> RestartableProcess:
        """One that is in service, as soon as there is one; another than that if there is another."""
        await eventually(lambda: bool(self._in_service()), what="a process is in service", within=60)
        chosen = self._in_service()
        return chance.choice([each for each in chosen if each is not other_than] or chosen)

    def _in_service(self) -> list[RestartableProcess]:
        return [each for number, each in enumerate(self.processes) if self._is_in_service(number)]

    def _is_in_service(self, number: int) -> bool:
        now = moment()
        faults = self.timeline.of(number, Span(now, now))
        stands_still = any(each.kind is FaultKind.PAUSE and now - each.began > NOTICED_AFTER for each in faults)
        return number not in self.out_of_service and not stands_still
