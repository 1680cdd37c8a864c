"""What the operator wants to see of the requests, besides the console and the log."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Nothing of it is on by itself."""

    metrics: bool = False  # at /metrics, on the port for callers
    metrics_listen: tuple[str, int] | None = None  # and at that of its own
    audit_log: Path | None = None
    audit_arguments: bool = False  # and not only their digest
    otel: bool = False  # traces and metrics by OpenTelemetry, where its variables say

    @property
    def wants_metrics(self) -> bool:
        return self.metrics or self.metrics_listen is not None
