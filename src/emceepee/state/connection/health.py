"""The health of a connected backend, derived from the outcomes of its checks."""

from dataclasses import dataclass, replace
from enum import StrEnum

DEGRADED_AFTER = 3


class HealthStatus(StrEnum):
    """The health of a connected server in `list_servers`."""

    HEALTHY = "healthy"
    """The server answers its checks."""
    DEGRADED = "degraded"
    """Several checks in a row got no answer."""


@dataclass(frozen=True, slots=True)
class Health:
    """Consecutive failures and the last error. A degraded backend is reported, but never reconnected for it."""

    failures: int = 0
    last_error: str | None = None

    @property
    def status(self) -> HealthStatus:
        return HealthStatus.DEGRADED if self.failures >= DEGRADED_AFTER else HealthStatus.HEALTHY

    def answered(self) -> "Health":
        return self if self.failures == 0 else Health()

    def failed(self, error: str) -> "Health":
        return replace(self, failures=self.failures + 1, last_error=error)
