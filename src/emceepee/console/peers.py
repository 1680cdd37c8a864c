"""The consoles of other replicas, as this one needs them: what they tell, and what only they can do."""

from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass
from typing import NewType, Protocol

Peer = NewType("Peer", str)  # names one replica, and none that comes after it
OWN = Peer("")  # this one


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerRequest:
    """What a page asked here, and another replica may have."""

    principal: str
    method: str
    target: str
    """Path and query."""
    body: bytes = b""


@dataclass(frozen=True, slots=True)
class PeerAnswer:
    """Of the replica that has the session, as the page would have got it there."""

    status: int
    body: bytes


class PeerLost(Exception):
    """The replica did not answer, or not to the end. What it was asked to do, it may have done."""


class PeerConsoles(Protocol):
    """Asks other replicas, each of which answers with what it has itself."""

    @property
    def peers(self) -> Sequence[Peer]:
        """Those that are alive, without this one."""
        ...

    def watch(self, watcher: Callable[[], None]) -> None:
        """Call `watcher` when one comes or goes."""
        ...

    def unwatch(self, watcher: Callable[[], None]) -> None: ...

    def feed(self, peer: Peer, principal: str) -> AsyncGenerator[bytes, None]:
        """Its feed of the principal's sessions, in pieces of any size. Raises: PeerLost."""
        ...

    async def ask(self, peer: Peer, request: PeerRequest, *, within: float) -> PeerAnswer | None:
        """None if it has no such session, or cannot be reached: then it did nothing. Raises: PeerLost."""
        ...


class NoPeers:
    """For a process that shares its sessions with none."""

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
