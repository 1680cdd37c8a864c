"""Passing requests on to the replicas that hold their sessions."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from emceepee.backends.http1.errors import HttpFailure, NotConnected
from emceepee.backends.http1.pool import ConnectionPool, most_descriptors
from emceepee.clock import Clock
from emceepee.guard.identity import CallerIdentity
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner, close_bounded
from emceepee.replicas.holder_link import HolderLink, LinkParts, LinkPassage, SentHop
from emceepee.replicas.passage import FAILED_STATUS, Passage
from emceepee.replicas.proven_response import ProvenResponse
from emceepee.replicas.signature import SignedMessage, Signer
from emceepee.replicas.wire import LINE_HEADER, NOT_HELD_STATUS, passed_on, request_target
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.forwarding import ForwardOutcome, LostReply
from emceepee.state.replica import Replica

CONNECT_SECONDS = 2.0  # to a machine that is near; the caller's request waits for nothing else so far


class NotAnswered(Exception):
    """A request of this replica's own that another one did not answer, or not to the end."""

    def __init__(self, outcome: ForwardOutcome) -> None:
        super().__init__(outcome.name)
        self.outcome = outcome


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
    ) -> ForwardOutcome:
        """Write the holder's response to the caller, as it comes. `lost_reply` ends a stream that broke off."""
        scope = request.scope
        lines = passed_on(scope["headers"]) + b"%b: %b\r\n" % (LINE_HEADER, request.connection.line.to_bytes())
        message = SignedMessage(scope["method"].encode("ascii"), request_target(scope), lines, body)
        try:
            link = self._links.get(holder) or self._open_link(holder)
            hop = await link.send(message, request.identity)
        except (NotConnected, ValueError):
            return ForwardOutcome.UNREACHABLE
        return await Passage(link, hop, request, lost_reply).run()

    @property
    def is_passing(self) -> bool:
        """Whether a call that was passed on still waits for its answer."""
        return any(passage.is_call for passage in self._passages())

    def end_streams(self) -> None:
        """This process stops: streams that belong to no call end now, and their callers open others elsewhere."""
        for passage in self._passages():
            if passage.is_standing:
                passage.break_off()

    def break_off(self) -> None:
        """Nobody is waited for any more. For the holders these callers have left; calls that run go on there."""
        for passage in self._passages():
            passage.break_off()

    @asynccontextmanager
    async def ask(
        self, replica: Replica, message: SignedMessage, identity: CallerIdentity
    ) -> AsyncIterator[ProvenResponse]:
        """The response to a request that no caller has made, to be read within the context. Raises: NotAnswered."""
        try:
            link = self._links.get(replica) or self._open_link(replica)
            hop = await link.send(message, identity)
        except (NotConnected, ValueError):
            raise NotAnswered(ForwardOutcome.UNREACHABLE) from None
        asking, response = _Asking(hop), hop.response
        link.passages.add(asking)
        try:
            await response.wait_for_head()
            if not link.is_answered(hop):
                raise NotAnswered(
                    ForwardOutcome.LOST if response.status == FAILED_STATUS else ForwardOutcome.UNREACHABLE
                )
            if response.status == NOT_HELD_STATUS:
                raise NotAnswered(ForwardOutcome.NOT_HELD)
            yield response
        except HttpFailure:
            raise NotAnswered(ForwardOutcome.LOST) from None
        finally:
            link.passages.discard(asking)
            if not response.status:
                link.report_unread(hop)  # what rode on it may not have arrived, either
            response.close()

    def drop(self, replica: Replica) -> None:
        """It is gone, though its connections may look alive: whatever is on its way there breaks off."""
        for holder in [one for one in self._links if (one.slot, one.epoch) == (replica.slot, replica.epoch)]:
            self._links.pop(holder).drop()

    async def take_leave(self) -> None:
        """Tell all holders what they do not know yet; the rest was read."""
        links = list(self._links.values())
        await asyncio.gather(*(link.take_leave() for link in links), return_exceptions=True)

    def _passages(self) -> list[LinkPassage]:
        return [passage for link in self._links.values() for passage in link.passages]

    def _open_link(self, holder: Replica) -> HolderLink:
        """Raises: ValueError."""
        for earlier in [one for one in self._links if one.slot == holder.slot and one.epoch < holder.epoch]:
            self.drop(earlier)
        link = self._links[holder] = HolderLink(holder, self._parts)
        return link


class _Asking:
    """On its way for this replica itself."""

    is_standing = False  # whoever asks for a stream ends it in time
    is_call = False

    def __init__(self, hop: SentHop) -> None:
        self._hop = hop

    def break_off(self) -> None:
        self._hop.response.close()
