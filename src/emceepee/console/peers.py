"""The interface to the consoles of other replicas: their feeds, and the requests that only they can serve."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

Peer = NewType("Peer", str)  # identifies one replica, and none of its successors
OWN = Peer("")  # this replica


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRequest:
    """A page's request that another replica may be able to serve."""

    principal: str
    method: str
    target: str
    """Path and query."""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """The answer of the replica that has the session, exactly as the page would have received it there."""

    status: int
    body: bytes


class PeerLost(Exception):
    """The replica did not answer, or not completely. It may have performed the request."""


class PeerConsoles(Protocol):
    """Queries other replicas. Each answers only for its own sessions."""

    @property
    def peers(self) -> Sequence[Peer]:
        """The other live replicas."""
        ...

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` when a replica joins or leaves."""
        ...

    def unwatch(self, watcher: Callable[[], None]) -> None: ...

    def feed(self, peer: Peer, principal: str) -> AsyncGenerator[bytes, None]:
        """Return the replica's feed of the principal's sessions, in pieces of any size. Raises: PeerLost."""
        ...

    async def ask(self, peer: Peer, request: PeerRequest, *, within: float) -> PeerAnswer | None:
        """Return None if the replica lacks the session or is unreachable; then it did nothing. Raises: PeerLost."""
        ...


class NoPeers:
    """For a process that does not share its sessions."""

    peers: Sequence[Peer] = ()

    def watch(self, watcher: Callable[[], None]) -> None:
        pass

    def unwatch(self, watcher: Callable[[], None]) -> None:
        pass

    async def feed(self, peer: Peer, principal: str) -> AsyncGenerator[bytes, None]:
        nothing: tuple[bytes, ...] = ()
        for piece in nothing:
            yield piece

    async def ask(self, peer: Peer, request: PeerRequest, *, within: float) -> PeerAnswer | None:
        return None
