"""The effects that a step of a connection requests, executed in their order."""

from dataclasses import dataclass

from emceepee.state.connection.connection_state import LinkEnd
from emceepee.state.connection.retry import Retry


@dataclass(frozen=True, slots=True)
class Dial:
    """Open a link; the outcome is Opened or DialFailed."""


@dataclass(frozen=True, slots=True)
class AbandonDial:
    """Cancel the current attempt; the outcome is Released."""


@dataclass(frozen=True, slots=True)
class CloseLink:
    """Close the link; the outcome is Released."""

    end: LinkEnd


@dataclass(frozen=True, slots=True)
class StartTimer:
    seconds: float


@dataclass(frozen=True, slots=True)
class StartHolding:
    """Start the timer for the longest time that a retiring link may hold waiters back."""


@dataclass(frozen=True, slots=True)
class StopTimer:
    pass


@dataclass(frozen=True, slots=True)
class AdmitWaiters:
    """Pass the link to all waiters."""


@dataclass(frozen=True, slots=True)
class RejectWaiters:
    """Fail all waiters with the reason that no link is available."""


@dataclass(frozen=True, slots=True)
class AnnounceUp:
    """Announce the link. `tries` is None for a first connection, else the number of attempts of a reconnection."""

    tries: int | None


@dataclass(frozen=True, slots=True)
class AnnounceEnd:
    """Announce the end of the link, before its requests fail."""

    end: LinkEnd


@dataclass(frozen=True, slots=True)
class AnnounceFailure:
    reason: str
    tries: int


@dataclass(frozen=True, slots=True)
class AnnounceRetry:
    retry: Retry


@dataclass(frozen=True, slots=True)
class AnnounceGivingUp:
    reason: str
    attempts: int


Effect = (
    Dial
    | AbandonDial
    | CloseLink
    | StartTimer
    | StartHolding
    | StopTimer
    | AdmitWaiters
    | RejectWaiters
    | AnnounceUp
    | AnnounceEnd
    | AnnounceFailure
    | AnnounceRetry
    | AnnounceGivingUp
)
