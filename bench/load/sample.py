"""The measurements of one run of callers."""

from dataclasses import dataclass, field

_MILLISECONDS = 1000.0


class WrongAnswer(Exception):
    """A contestant did not do its work: its speed means nothing."""


@dataclass(slots=True, kw_only=True)
class Sample:
    """Calls that were made in a row by callers who each wait for the last answer before they ask again."""

    seconds: float = 0.0
    latencies: list[float] = field(default_factory=list)
    cpu_seconds: float = 0.0  # of the proxy, during the run

    @property
    def calls(self) -> int:
        return len(self.latencies)

    @property
    def rate(self) -> float:
        return self.calls / self.seconds

    def percentile_ms(self, share: float) -> float:
        ordered = sorted(self.latencies)
        return ordered[min(int(len(ordered) * share), len(ordered) - 1)] * _MILLISECONDS

    @property
    def cpu_us(self) -> float:
        """CPU time a call, in microseconds."""
        return self.cpu_seconds / self.calls * 1e6
