"""What a step of a connection asks to be done, in the order in which it is given."""

from dataclasses import dataclass

from emceepee.state.connection.connection import LinkEnd
from emceepee.state.connection.retry import Retry


@dataclass(frozen=True, slots=True)
class Dial:
    """Open a link; the outcome is Opened or DialFailed."""


@dataclass(frozen=True, slots=True)
class AbandonDial:
    """Cancel the attempt under way; the outcome is Released."""


@dataclass(frozen=True, slots=True)
class CloseLink:
    """The outcome is Released."""

    end: LinkEnd


@dataclass(frozen=True, slots=True)
class StartTimer:
    seconds: float


@dataclass(frozen=True, slots=True)
class StartHolding:
    """Start the timer, with as much time as a retiring link may hold waiters back."""


@dataclass(frozen=True, slots=True)
class StopTimer:
    pass


@dataclass(frozen=True, slots=True)
class AdmitWaiters:
    """Everyone who waits gets the link."""


@dataclass(frozen=True, slots=True)
class RejectWaiters:
    """Everyone who waits learns that there is no link, and why."""


@dataclass(frozen=True, slots=True)
class AnnounceUp:
    """`tries` is None for a first connection, else how many a reconnection took."""

    tries: int | None


@dataclass(frozen=True, slots=True)
class AnnounceEnd:
    """Before the requests on the link fail."""

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
