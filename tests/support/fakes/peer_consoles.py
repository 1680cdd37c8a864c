"""The consoles of other replicas, in the test's hands."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

from emceepee.console.feed_frames import make_frame
from emceepee.console.peers import Peer, PeerAnswer, PeerLost, PeerRequest

Answers = Callable[[PeerRequest], PeerAnswer | None]


class FakePeer:
    """Another replica: the content of its feed, and its answers."""

    def __init__(self, name: str) -> None:
        self.name = Peer(name)
        self.answer: Answers = lambda request: None
        self.asked: list[PeerRequest] = []
        self.is_silent = False  # it answers nothing at all
        self.opened = 0
        self.read = 0  # pieces of its feed that were taken
        self._pieces: asyncio.Queue[bytes | None] = asyncio.Queue()

    @property
    def unread(self) -> int:
        return self._pieces.qsize()

    def tell(self, name: str, **data: Any) -> None:
        self.write(make_frame(name, data).encoded)

    def tell_all(self, *session_ids: str) -> None:
        """Send the beginning of a feed: all sessions."""
        self.tell("hello", version="0")
        for session_id in session_ids:
            self.tell("session", id=session_id, of=self.name)
        self.tell("ready")

    def write(self, piece: bytes) -> None:
        self._pieces.put_nowait(piece)

    def break_off(self) -> None:
        self._pieces.put_nowait(None)

    async def feed(self) -> AsyncGenerator[bytes, None]:
        self.opened += 1
        while (piece := await self._pieces.get()) is not None:
            self.read += 1
            yield piece
        raise PeerLost


class FakePeers:
    """All other replicas. Watchers are notified when one joins or leaves."""

    def __init__(self, *peers: FakePeer) -> None:
        self.by_name = {peer.name: peer for peer in peers}
        self.watchers: list[Callable[[], None]] = []
        self.principals: set[str] = set()
        self.open_feeds = 0

    @property
    def peers(self) -> list[Peer]:
        return list(self.by_name)

    def come(self, peer: FakePeer) -> None:
        self.by_name[peer.name] = peer
        self._report()

    def go(self, peer: FakePeer) -> None:
        del self.by_name[peer.name]
        peer.break_off()
        self._report()

    def watch(self, watcher: Callable[[], None]) -> None:
        self.watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        self.watchers.remove(watcher)

    async def feed(self, peer: Peer, principal: str) -> AsyncGenerator[bytes, None]:
        self.principals.add(principal)
        self.open_feeds += 1
        try:
            async for piece in self.by_name[peer].feed():
                yield piece
        finally:
            self.open_feeds -= 1

    async def ask(self, peer: Peer, request: PeerRequest, *, within: float) -> PeerAnswer | None:
        asked = self.by_name[peer]
        asked.asked.append(request)
        if asked.is_silent:
            raise PeerLost
        return asked.answer(request)

    def _report(self) -> None:
        for watcher in list(self.watchers):
            watcher()
