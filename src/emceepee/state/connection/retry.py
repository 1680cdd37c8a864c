"""When a lost backend is tried again, decided from what is known; the waiting is done elsewhere."""

from dataclasses import dataclass, replace

JITTER = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """Delays are seconds. `most` None means for ever."""

    base: float
    multiplier: float = 2.0
    longest: float
    most: int | None = None
    stable_after: float  # a connection that lasted this long has earned a fresh count

    def delay(self, attempt: int, spread: float) -> float:
        """Before the given attempt (the first is 1); `spread` from -1 to 1 keeps many from coming at once."""
        grown = self.base * self.multiplier ** min(attempt - 1, 60)  # beyond that a float would overflow
        return min(grown, self.longest) * (1 + JITTER * spread)


@dataclass(frozen=True, slots=True)
class Retry:
    """Try again in `delay` seconds; this is the attempt of that number."""

    attempt: int
    delay: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The attempts are used up."""

    attempts: int


@dataclass(frozen=True, slots=True)
class RetryCount:
    """How often it was tried since the connection was last stable."""

    policy: RetryPolicy
    attempts: int = 0

    def after_loss(self, up_for: float) -> "RetryCount":
        """A connection was lost that had lasted `up_for` seconds. One that dies at once gets no fresh budget."""
        return replace(self, attempts=0) if up_for >= self.policy.stable_after else self

    def next(self, spread: float) -> Retry | GiveUp:
        if self.policy.most is not None and self.attempts >= self.policy.most:
            return GiveUp(self.attempts)
        return Retry(self.attempts + 1, self.policy.delay(self.attempts + 1, spread))

    def tried(self) -> "RetryCount":
        return replace(self, attempts=self.attempts + 1)
