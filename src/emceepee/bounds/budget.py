"""A limit on one conversion of untrusted data: its bytes, nodes, and time.

A conversion spends from the budget while it reads or builds each value, so a hostile input stops early. A check of the
finished value comes too late: by then the memory and the time are gone.
"""

from collections.abc import Callable
from time import perf_counter

NODES_PER_CLOCK_READING = 256  # reading the clock for each node would double the cost of cheap conversions


class OverBudget(ValueError):
    """A conversion needs more bytes, nodes, or time than its budget allows."""

    def __init__(self, resource: str, limit: float) -> None:
        super().__init__(f"it needs more than {limit:g} {resource}")
        self.resource = resource
        self.limit = limit


class Budget:
    """Spend from it once per value that a conversion reads or builds.

    `seconds` starts with the first spending, so a budget may be created before its conversion is queued.
    """

    __slots__ = ("_deadline", "_next_reading", "_now", "max_bytes", "max_nodes", "seconds", "used_bytes", "used_nodes")

    def __init__(
        self, *, max_bytes: int, max_nodes: int, seconds: float | None = None, now: Callable[[], float] = perf_counter
    ) -> None:
        self.max_bytes, self.max_nodes, self.seconds = max_bytes, max_nodes, seconds
        self.used_bytes = self.used_nodes = 0
        self._now = now
        self._deadline: float | None = None
        self._next_reading = 0

    def spend(self, size: int = 0, nodes: int = 1) -> None:
        """Count `nodes` more values with `size` more bytes. Raises: OverBudget."""
        self.used_nodes += nodes
        self.used_bytes += size
        if self.used_nodes > self.max_nodes:
            raise OverBudget("nodes", self.max_nodes)
        if self.used_bytes > self.max_bytes:
            raise OverBudget("bytes", self.max_bytes)
        if self.seconds is not None and self.used_nodes >= self._next_reading:
            self._read_clock(self.seconds)

    def _read_clock(self, seconds: float) -> None:
        self._next_reading = self.used_nodes + NODES_PER_CLOCK_READING
        now = self._now()
        if self._deadline is None:
            self._deadline = now + seconds
        elif now > self._deadline:
            raise OverBudget("seconds", seconds)
