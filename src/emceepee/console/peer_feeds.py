"""The feeds of other replicas, read in the background and merged into one page's feed.

    a replica joins ──▶ open ──▶ hello … ready ──▶ changes ────────────────┐
                         ▲ after a pause                                   │ the feed breaks off
                         └─────────────────────────────────────────────────┤
                                       LINGER_SECONDS later, unless it is open again: its sessions are gone
                                       for the page, unless another replica has reported them since

The feeds never wait for the page, and the page never waits for a feed. The unread data of a feed is bounded: above the
bound, the other replica must wait (backpressure).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import aclosing

from emceepee.clock import Clock, Handle, epoch_milliseconds, give_up_after
from emceepee.console.feed_frames import Frame, FrameSplitter, gone_frame, make_frame, parse_frame
from emceepee.console.peers import Peer, PeerConsoles, PeerLost
from emceepee.console.session_reporters import SessionReporters
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.telemetry.logs import EventLog
from emceepee.wire.json_types import JsonObject

log = EventLog("console")
LINGER_SECONDS = 3.0  # for a feed to reconnect, or for another replica to take over a session
SILENCE_SECONDS = 40.0  # a feed pings every 15 s: after two missed pings it is dead
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0  # seconds until a broken feed is reopened
MOST_WAITING = 1 << 20  # unread bytes of one feed
LOST = "The replica of emceepee that served this was lost."


class PeerFeeds:
    """The peer feeds of one page. `due` is called when frames are available."""

    def __init__(
        self, peers: PeerConsoles, principal: str, clock: Clock, reporters: SessionReporters, due: Callable[[], None]
    ) -> None:
        self._peers, self._principal, self._clock, self._reporters, self._due = peers, principal, clock, reporters, due
        self._feeds: dict[Peer, _PeerFeed] = {}
        self._tasks = TaskOwner("peer feeds")

    def __repr__(self) -> str:
        return f"<PeerFeeds {list(self._feeds.values())}>"

    def start(self) -> None:
        self._peers.watch(self._follow_peers)
        self._follow_peers()

    async def close(self) -> None:
        self._peers.unwatch(self._follow_peers)
        await self._tasks.close(within=CLOSE_IDLE_SECONDS)
        for feed in self._feeds.values():
            feed.stop_lingering()

    @property
    def are_settled(self) -> bool:
        """Whether each feed has sent its initial state or has failed."""
        return all(feed.is_settled for feed in self._feeds.values())

    def take(self) -> Iterator[bytes]:
        """Return the frames received since the last call."""
        for feed in list(self._feeds.values()):
            for _ in range(len(feed.waiting)):  # a fixed number, so that the other feeds get their turn
                for frame in self._hear(feed, feed.pop()):
                    yield frame.encoded
            if feed.is_lost:
                feed.is_lost = False
                for frame in self._give_up(feed):
                    yield frame.encoded

    def _hear(self, feed: "_PeerFeed", encoded: bytes) -> Iterator[Frame]:
        try:
            frame = parse_frame(encoded)
            match frame.name:
                case "hello":
                    self._reporters.begin(feed.peer)
                    feed.begin()
                case "ready":
                    feed.is_settled = feed.is_complete = True
                    yield from map(gone_frame, self._reporters.complete(feed.peer))
                case "session":
                    if self._reporters.tell(feed.peer, frame.data["id"]):
                        yield frame
                case "session_gone":
                    if self._reporters.end(feed.peer, frame.data["id"]):
                        yield frame
                case "logs" if feed.repeats:
                    pass  # the page has them and could not detect duplicates
                case name:
                    if name == "requests":
                        feed.keep_pending(frame.data["rows"])
                    yield frame
        except (ValueError, LookupError, TypeError) as error:
            log.warning("peer_feed_unreadable", error=str(error))

    def _give_up(self, feed: "_PeerFeed") -> Iterator[Frame]:
        """End the replica's pending requests with an error, because their outcome will never arrive."""
        if feed.pending:
            now = epoch_milliseconds(self._clock.now())
            ended = {"status": "error", "error": LOST}
            rows = [row | ended | {"endedAt": max(now, row["startedAt"])} for row in feed.pending.values()]
            feed.pending.clear()
            yield make_frame("requests", {"rows": rows})
        yield from map(gone_frame, self._reporters.leave(feed.peer))
        if feed.peer not in self._peers.peers:
            self._feeds.pop(feed.peer, None)

    # Background tasks.

    def _follow_peers(self) -> None:
        peers = self._peers.peers
        for peer in peers:
            feed = self._feeds.get(peer)
            if feed is None:
                feed = self._feeds[peer] = _PeerFeed(peer)
            if feed.reading is None or feed.reading.done():
                feed.reading = self._tasks.spawn(self._follow(feed), name=peer)
        for feed in self._feeds.values():
            if feed.peer not in peers and feed.reading is not None:
                feed.reading.cancel()

    async def _follow(self, feed: "_PeerFeed") -> None:
        pause = FIRST_PAUSE
        while True:
            opened = feed.opened
            try:
                await self._read(feed)
            except (PeerLost, TimeoutError, ValueError):
                pass
            finally:
                self._linger(feed)
            pause = FIRST_PAUSE if feed.opened > opened else min(2 * pause, LONGEST_PAUSE)
            await self._clock.sleep(pause)

    async def _read(self, feed: "_PeerFeed") -> None:
        """Raises: PeerLost, TimeoutError, ValueError."""
        splitter = FrameSplitter()
        async with aclosing(self._peers.feed(feed.peer, self._principal)) as pieces:
            while True:
                async with give_up_after(self._clock, SILENCE_SECONDS):
                    piece = await anext(pieces, b"")
                if not piece:
                    return
                if frames := splitter.split(piece):
                    feed.put(frames)
                    self._due()
                await feed.room.wait()

    def _linger(self, feed: "_PeerFeed") -> None:
        feed.is_settled = True
        feed.stop_lingering()
        feed.lingering = self._clock.call_later(LINGER_SECONDS, lambda: self._lose(feed))
        self._due()

    def _lose(self, feed: "_PeerFeed") -> None:
        feed.is_lost = True
        self._due()


class _PeerFeed:
    """The feed of one replica, with its unread frames."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer
        self.reading: asyncio.Task[None] | None = None
        self.lingering: Handle | None = None
        self.waiting: deque[bytes] = deque()
        self._size = 0  # of the unread frames
        self.room = asyncio.Event()
        self.room.set()
        self.pending: dict[str, JsonObject] = {}  # the rows of requests that have not ended, by their ids
        self.opened = 0  # how often the feed has been opened
        self.is_settled = self.is_complete = self.is_lost = False

    def __repr__(self) -> str:
        state = "complete" if self.is_complete else "settled" if self.is_settled else "opening"
        return f"<_PeerFeed {self.peer} {state} waiting={len(self.waiting)}>"

    @property
    def repeats(self) -> bool:
        """Whether it resends data that the page received before the feed broke off."""
        return self.opened > 1 and not self.is_complete

    def begin(self) -> None:
        self.opened += 1
        self.pending.clear()
        self.is_lost = self.is_complete = False
        self.stop_lingering()

    def put(self, frames: list[bytes]) -> None:
        self.waiting.extend(frames)
        self._size += sum(map(len, frames))
        if self._size > MOST_WAITING:
            self.room.clear()

    def pop(self) -> bytes:
        frame = self.waiting.popleft()
        self._size -= len(frame)
        if self._size <= MOST_WAITING:
            self.room.set()
        return frame

    def keep_pending(self, rows: list[JsonObject]) -> None:
        for row in rows:
            if row["status"] == "pending":
                self.pending[row["id"]] = row
            else:
                self.pending.pop(row["id"], None)

    def stop_lingering(self) -> None:
        if self.lingering is not None:
            self.lingering.cancel()
            self.lingering = None
