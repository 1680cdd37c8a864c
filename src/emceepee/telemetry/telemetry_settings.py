"""The operator's telemetry options, besides the console and the log."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetrySettings:
    """Telemetry options. All are off by default."""

    metrics: bool = False  # at /metrics, on the main port
    metrics_listen: tuple[str, int] | None = None  # and on its own port
    audit_log: Path | None = None
    audit_arguments: bool = False  # in full, instead of only their digest
    otel: bool = False  # OpenTelemetry traces and metrics, configured by its environment variables

    @property
    def wants_metrics(self) -> bool:
        return self.metrics or self.metrics_listen is not None
