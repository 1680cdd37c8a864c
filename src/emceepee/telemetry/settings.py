"""What the operator wants to see of the requests, besides the console and the log."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Nothing of it is on by itself."""

    metrics: bool = False  # at /metrics, on the port for callers
    metrics_listen: tuple[str, int] | None = None  # and at that of its own

    @property
    def wants_metrics(self) -> bool:
        return self.metrics or self.metrics_listen is not None
