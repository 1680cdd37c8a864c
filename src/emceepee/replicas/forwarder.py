"""Forwards requests to the replicas that hold their sessions."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from emceepee.backends.http1.http_failures import HttpFailure, NotConnected
from emceepee.backends.http1.pool import ConnectionPool, most_descriptors
from emceepee.clock import Clock
from emceepee.guard.caller_identity import CallerIdentity
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner, close_bounded
from emceepee.replicas.holder_link import ForwardedRequest, HolderLink, LinkParts, SentHop
from emceepee.replicas.hop_messages import LINE_HEADER, NOT_HELD_STATUS, passed_on, request_target
from emceepee.replicas.proven_response import ProvenResponse
from emceepee.replicas.response_relay import FAILED_STATUS, ResponseRelay
from emceepee.replicas.signature import SignedMessage, Signer
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.request_forwarder import ForwardOutcome, LostReply
from emceepee.state.replica import Replica

CONNECT_SECONDS = 2.0  # short, because the machine is nearby and the caller's request is waiting


class NotAnswered(Exception):
    """A request by this replica itself got no complete answer from another replica."""

    def __init__(self, outcome: ForwardOutcome) -> None:
        super().__init__(outcome.name)
        self.outcome = outcome


class Forwarder:
    """One per process. Open it with `running`."""

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
        """`key` is the secret that all replicas share; `tls` is for replicas whose address says https."""
        most, tasks = most_descriptors(), TaskOwner("forwarder")  # an open stream occupies a connection
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
        """Stream the holder's response to the caller. `lost_reply` ends a stream that broke off."""
        scope = request.scope
        lines = passed_on(scope["headers"]) + b"%b: %b\r\n" % (LINE_HEADER, request.connection.line.to_bytes())
        message = SignedMessage(scope["method"].encode("ascii"), request_target(scope), lines, body)
        try:
            link = self._links.get(holder) or self._open_link(holder)
            hop = await link.send(message, request.identity)
        except (NotConnected, ValueError):
            return ForwardOutcome.UNREACHABLE
        return await ResponseRelay(link, hop, request, lost_reply).run()

    @property
    def is_passing(self) -> bool:
        """Whether a forwarded call still waits for its answer."""
        return any(request.is_call for request in self._all_requests())

    def end_streams(self) -> None:
        """Shut down: end streams that belong to no call, so that their callers reopen them elsewhere."""
        for request in self._all_requests():
            if request.is_standing:
                request.break_off()

    def break_off(self) -> None:
        """Stop waiting. Holders treat these callers as disconnected; running calls continue there."""
        for request in self._all_requests():
            request.break_off()

    @asynccontextmanager
    async def ask(
        self, replica: Replica, message: SignedMessage, identity: CallerIdentity
    ) -> AsyncIterator[ProvenResponse]:
        """Send a request of this replica itself. Read the response within the context. Raises: NotAnswered."""
        try:
            link = self._links.get(replica) or self._open_link(replica)
            hop = await link.send(message, identity)
        except (NotConnected, ValueError):
            raise NotAnswered(ForwardOutcome.UNREACHABLE) from None
        asking, response = _Asking(hop), hop.response
        link.requests.add(asking)
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
            link.requests.discard(asking)
            if not response.status:
                link.report_unread(hop)  # reports that the request carried may be lost as well
            response.close()

    def drop(self, replica: Replica) -> None:
        """Break off all requests to a lost replica, although its connections may look alive."""
        for holder in [one for one in self._links if (one.slot, one.epoch) == (replica.slot, replica.epoch)]:
            self._links.pop(holder).drop()

    async def take_leave(self) -> None:
        """Send all holders the remaining reports. All other responses count as read."""
        links = list(self._links.values())
        await asyncio.gather(*(link.take_leave() for link in links), return_exceptions=True)

    def _all_requests(self) -> list[ForwardedRequest]:
        return [request for link in self._links.values() for request in link.requests]

    def _open_link(self, holder: Replica) -> HolderLink:
        """Raises: ValueError."""
        for earlier in [one for one in self._links if one.slot == holder.slot and one.epoch < holder.epoch]:
            self.drop(earlier)
        link = self._links[holder] = HolderLink(holder, self._parts)
        return link


class _Asking:
    """A request that this replica itself sent."""

    is_standing = False  # the caller of `ask` ends a stream in time
    is_call = False

    def __init__(self, hop: SentHop) -> None:
        self._hop = hop

    def break_off(self) -> None:
        self._hop.response.close()
