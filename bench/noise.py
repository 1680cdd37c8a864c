"""Other load on the machine during a run: the more of it, the less the times mean."""

import os
import resource
from pathlib import Path
from time import perf_counter

BUSY = (0, 1, 2, 5, 6, 7)  # of the fields of /proc/stat: all but idling, waiting, and what is counted twice


class Noise:
    """Begins to count when it is made."""

    def __init__(self) -> None:
        self._cores = os.cpu_count() or 1
        self._began, self._busy, self._ours = perf_counter(), _busy_seconds(), _our_seconds()

    def share(self) -> float:
        """The share of all cores that went to others. Right only when all our children have ended."""
        others = (_busy_seconds() - self._busy) - (_our_seconds() - self._ours)
        return max(others, 0.0) / (perf_counter() - self._began) / self._cores


def _busy_seconds() -> float:
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    return sum(int(fields[number]) for number in BUSY) / os.sysconf("SC_CLK_TCK")


def _our_seconds() -> float:
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(item.ru_utime + item.ru_stime for item in spent)
