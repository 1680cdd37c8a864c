"""Decides when to retry a lost backend; the caller does the waiting."""

from dataclasses import dataclass, replace

JITTER = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Delays are in seconds. `most` None means no limit."""

    base: float
    multiplier: float = 2.0
    longest: float
    most: int | None = None
    stable_after: float  # a connection that lasted this long resets the count

    def delay(self, attempt: int, spread: float) -> float:
        """Return the delay before attempt 1, 2, …; `spread` from -1 to 1 keeps many clients from retrying at once."""
        grown = self.base * self.multiplier ** min(attempt - 1, 60)  # a larger exponent would overflow a float
        return min(grown, self.longest) * (1 + JITTER * spread)


@dataclass(frozen=True, slots=True)
class Retry:
    """Retry in `delay` seconds, as attempt number `attempt`."""

    attempt: int
    delay: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The attempts are used up."""

    attempts: int


@dataclass(frozen=True, slots=True)
class RetryCount:
    """The number of attempts since the connection was last stable."""

    policy: RetryPolicy
    attempts: int = 0

    def after_loss(self, up_for: float) -> "RetryCount":
        """Return the count after the loss of a connection that lasted `up_for` seconds. A short one resets nothing."""
        return replace(self, attempts=0) if up_for >= self.policy.stable_after else self

    def next(self, spread: float) -> Retry | GiveUp:
        if self.policy.most is not None and self.attempts >= self.policy.most:
            return GiveUp(self.attempts)
        return Retry(self.attempts + 1, self.policy.delay(self.attempts + 1, spread))

    def tried(self) -> "RetryCount":
        return replace(self, attempts=self.attempts + 1)
