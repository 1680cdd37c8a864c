"""Passing requests on to the replicas that hold their sessions."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from emceepee.backends.http1.errors import NotConnected
from emceepee.backends.http1.pool import ConnectionPool, most_descriptors
from emceepee.clock import Clock
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner, close_bounded
from emceepee.replicas.holder_link import HolderLink, LinkParts
from emceepee.replicas.passage import Passage
from emceepee.replicas.signature import Message, Signer
from emceepee.replicas.wire import passed_on, request_target
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.forwarding import LostReply, Outcome
from emceepee.state.replica import Replica

CONNECT_SECONDS = 2.0  # to a machine that is near; the caller's request waits for nothing else so far


class Forwarder:
    """One per process. Open with `running`."""

    def __init__(self, parts: LinkParts) -> None:
        self._parts = parts
        self._links: dict[Replica, HolderLink] = {}

    def __repr__(self) -> str:
        return f"<Forwarder {list(self._links.values())}>"

    @classmethod
    @asynccontextmanager
    async def running(
        cls, clock: Clock, *, key: bytes, own: Callable[[], Replica], tls: ssl.SSLContext | None = None
    ) -> "AsyncIterator[Forwarder]":
        """`key` is the secret that all replicas share, and `tls` for those whose address says https."""
        most, tasks = most_descriptors(), TaskOwner("forwarder")  # a standing stream takes a connection of its own
        async with ConnectionPool.running(
            clock, tls, per_origin=most, in_all=most, connect_seconds=CONNECT_SECONDS
        ) as pool:
            forwarder = cls(LinkParts(pool=pool, signer=Signer(key), own=own, tasks=tasks))
            try:
                yield forwarder
            finally:
                await close_bounded(forwarder.take_leave(), within=CLOSE_IDLE_SECONDS, what="hops to other replicas")
                await tasks.close(within=CLOSE_IDLE_SECONDS)

    async def forward(
        self, holder: Replica, request: HttpRequest, body: bytes, *, lost_reply: LostReply = lambda: None
    ) -> Outcome:
        """Write the holder's response to the caller, as it comes. `lost_reply` ends a stream that broke off."""
        scope = request.scope
        message = Message(scope["method"].encode("ascii"), request_target(scope), passed_on(scope["headers"]), body)
        try:
            link = self._links.get(holder) or self._open_link(holder)
            hop = await link.send(message, request.identity)
        except (NotConnected, ValueError):
            return Outcome.UNREACHABLE
        return await Passage(link, hop, request, lost_reply).run()

    def drop(self, replica: Replica) -> None:
        """It is gone, though its connections may look alive: whatever is on its way there breaks off."""
        for holder in [one for one in self._links if (one.slot, one.epoch) == (replica.slot, replica.epoch)]:
            self._links.pop(holder).drop()

    async def take_leave(self) -> None:
        """Tell all holders what they do not know yet; the rest was read."""
        links = list(self._links.values())
        await asyncio.gather(*(link.take_leave() for link in links), return_exceptions=True)

    def _open_link(self, holder: Replica) -> HolderLink:
        """Raises: ValueError."""
        for earlier in [one for one in self._links if one.slot == holder.slot and one.epoch < holder.epoch]:
            self.drop(earlier)
        link = self._links[holder] = HolderLink(holder, self._parts)
        return link
