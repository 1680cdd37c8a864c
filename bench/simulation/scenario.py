"""The scenario of a simulation."""

from dataclasses import dataclass, field
from enum import StrEnum

from emceepee.state.limits import Limits


class Balancing(StrEnum):
    """Whom a balancer sends a request to."""

    ROUND_ROBIN = "round robin"
    BY_SLOT = "by the slot in the id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Times are seconds, shares from 0 to 1."""

    balancing: Balancing = Balancing.ROUND_ROBIN
    replicas: int = 1000
    sessions: int = 1_000_000
    requests_per_second: float = 10_000
    changing: float = 0.1
    """Requests that change something durable."""
    moved: float = 0.02
    """Sessions that are not where their ids say, because of earlier losses."""
    with_timer: float = 0.05
    """Sessions with a timer. About half of them are due within the time that is simulated."""
    lost: float = 0.1
    """Replicas that are lost at once."""
    refuses: bool = False
    """Whether the machines of lost replicas keep running, and refuse connections. Otherwise nothing answers."""
    paused: float = 0.0
    """Replicas that stand still for two leases from the same moment on, and then go on."""
    trip_seconds: float = 0.001  # to the store and back
    hop_seconds: float = 0.0005  # to another replica and back
    work_seconds: float = 0.05  # of a request
    loss_at: float = 15.0
    replaced_after: float = 12.0
    """The time after the loss at which new replicas take the slots of the lost ones."""
    seconds: float = 40.0
    drain_seconds: float = 5.0
    """In these, at the end, every session of a lost replica that nobody asked for so far is asked for."""
    seed: int = 1
    limits: Limits = field(default_factory=Limits)

    @property
    def lease_seconds(self) -> float:
        return self.limits.replica_lease_seconds

    @property
    def settled_after(self) -> float:
        """So long after the loss every lease has lapsed, and all have heard of it."""
        return 2 * self.lease_seconds
