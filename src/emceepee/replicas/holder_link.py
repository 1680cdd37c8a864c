"""The link to one holder of sessions: its connections, its requests in flight, and the outcome of its responses.

A holder stores the content of a response until it learns that the caller has read it (decision 17). It counts the
response's events as delivered when it learns that the response was written. Both kinds of reports travel with the next
request to the holder, or separately after a short delay. The report of an unread response is sent at once.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from emceepee.backends.http1.http_failures import HttpFailure
from emceepee.backends.http1.origin import Address, HttpOrigin
from emceepee.backends.http1.pool import ConnectionPool
from emceepee.clock import Handle, epoch_milliseconds
from emceepee.guard.caller_identity import CallerIdentity
from emceepee.lifecycle import TaskOwner
from emceepee.replicas.delivery_reports import DeliveryReport, UnreportedResponses
from emceepee.replicas.hop_messages import LEAVING_STATUS, SETTLE_PATH, settlement
from emceepee.replicas.proven_response import ProvenResponse
from emceepee.replicas.signature import HOP_HEADER, SignedMessage, Signer
from emceepee.state.replica import Replica
from emceepee.telemetry.logs import EventLog
from emceepee.web.asgi import CallerConnection

log = EventLog("replicas")
SETTLE_AFTER = 1.0  # how long the report of a read response waits for a request that can carry it
WRITTEN_AFTER = 0.05  # the same for a written response: delivered events are promised to be saved within 100 ms
SETTLE_ATTEMPTS = 30  # then the holder and everything that it stored are considered lost
NO_CALLER = CallerIdentity()


class ForwardedRequest(Protocol):
    """A request in flight."""

    @property
    def is_standing(self) -> bool:
        """Whether it is a stream that does not answer a call."""
        ...

    @property
    def is_call(self) -> bool:
        """Whether a caller waits for the answer to a request."""
        ...

    def break_off(self) -> None:
        """End it, because the holder is gone or shutdown no longer waits."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkParts:
    """The parts that all links of a process share."""

    pool: ConnectionPool
    signer: Signer
    own: Callable[[], Replica]
    """Returns the signer: the replica that this process currently is."""
    tasks: TaskOwner


@dataclass(slots=True)
class SentHop:
    """A sent request and its response."""

    number: int
    response: ProvenResponse
    news: DeliveryReport
    """The reports that the request carried."""


class HolderLink:
    def __init__(self, holder: Replica, parts: LinkParts) -> None:
        """Raises: ValueError: the holder's address is invalid."""
        self.holder, self.parts = holder, parts
        self.requests: set[ForwardedRequest] = set()
        self._connections = parts.pool.of(_origin(holder.address))
        self._unsettled = UnreportedResponses()
        self._timer: Handle | None = None
        self._settles_at = 0.0
        self._settling: asyncio.Task[None] | None = None
        self._attempts = 0
        self._was_expected = self._is_refusal_logged = self._is_over = False

    def __repr__(self) -> str:
        return f"<HolderLink {self.holder.slot}.{self.holder.epoch} requests={len(self.requests)} {self._unsettled!r}>"

    async def send(self, message: SignedMessage, identity: CallerIdentity) -> SentHop:
        """Send a request, and return once it is written. Raises: NotConnected."""
        connection = self._connections.take() or await self._connections.connect()
        parts, news = self.parts, self._unsettled.take_some()
        number = parts.signer.next_number()
        signature = parts.signer.sign(
            message,
            number=number,
            target=self.holder,
            sender=parts.own(),
            at=int(epoch_milliseconds(parts.pool.clock.now())) // 1000,
            identity=identity,
            news=news,
        )
        wire = b"%b %b HTTP/1.1\r\n%b%b: %b\r\ncontent-length: %d\r\n\r\n%b" % (
            *(message.method, message.target, message.headers),
            *(HOP_HEADER, signature, len(message.body), message.body),
        )
        proof, has_body = parts.signer.proof(number), message.method != b"HEAD"
        response = ProvenResponse(connection.send(wire), proof, self._report_changed, has_body=has_body)
        return SentHop(number, response, news)

    def is_answered(self, hop: SentHop) -> bool:
        """Return whether the holder itself has answered. If not, it has not processed the request."""
        if hop.response.is_proven:
            return True
        if not self._is_refusal_logged and hop.response.status != LEAVING_STATUS:
            self._is_refusal_logged = True
            hint = "the clocks of the machines may differ by more than two minutes"
            log.warning("hop_refused", address=self.holder.address, status=hop.response.status, hint=hint)
        return False

    def _report_changed(self, problem: str) -> None:
        hint = "a program between the replicas changes what they send; protect the line with --replica-tls"
        log.warning("hop_response_changed", address=self.holder.address, problem=problem, hint=hint)

    # The outcome of responses

    def expect(self, hop: SentHop, connection: CallerConnection) -> None:
        """Track a response that is about to be written to the caller, to report whether the caller read it."""
        self._unsettled.expect(hop.number)
        self._was_expected = True
        connection.if_unread(
            partial(self._mark, hop.number, was_read=False), if_read=partial(self._mark, hop.number, was_read=True)
        )

    def report_written(self, hop: SentHop) -> None:
        if self._unsettled.mark_written(hop.number) and not self._is_over:
            self._settle_within(WRITTEN_AFTER)

    def report_unread(self, hop: SentHop) -> None:
        """Report that the response was not forwarded completely. The request and its reports may not have arrived."""
        self._unsettled.put_back(hop.news)
        self._unsettled.expect(hop.number)
        self._mark(hop.number, was_read=False)

    def _mark(self, number: int, *, was_read: bool) -> None:
        if not self._unsettled.mark(number, was_read=was_read) or self._is_over:
            return
        if was_read:
            self._settle_within(SETTLE_AFTER)
        else:
            self._settle()

    def _settle_within(self, seconds: float) -> None:
        at = self.parts.pool.clock.monotonic() + seconds
        if self._timer is None or at < self._settles_at:
            self._stop_timer()
            self._settles_at = at
            self._timer = self.parts.pool.clock.call_later(seconds, self._settle)

    def _settle(self) -> None:
        self._stop_timer()
        if self._settling is None or self._settling.done():
            self._settling = self.parts.tasks.spawn(self._tell_all(), name="settle")

    async def _tell_all(self) -> None:
        while self._unsettled.has_news:
            news = self._unsettled.take_all()
            try:
                await self._tell(settlement(news))
            except HttpFailure:
                self._attempts += 1
                if self._attempts < SETTLE_ATTEMPTS:
                    self._unsettled.put_back(news)
                    self._settle_within(SETTLE_AFTER)
                return
            self._attempts = 0

    async def _tell(self, body: bytes) -> None:
        """Raises: HttpFailure."""
        hop = await self.send(SignedMessage(b"POST", SETTLE_PATH, b"host: replica\r\n", body), NO_CALLER)
        await hop.response.wait_for_head()
        if not self.is_answered(hop):
            hop.response.close()
            raise HttpFailure("the holder did not answer")
        await hop.response.read(0)

    # Closing.

    def drop(self) -> None:
        """Drop a lost holder in any state of its connections."""
        self._is_over = True
        self._stop_timer()
        self._unsettled = UnreportedResponses()
        for request in list(self.requests):
            request.break_off()

    async def take_leave(self) -> None:
        """Report that all other responses were read, because all callers left in order. Raises: HttpFailure."""
        self._is_over = True
        self._stop_timer()
        if self._was_expected:
            await self._tell(settlement(self._unsettled.take_all(), is_farewell=True))

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def _origin(address: str) -> HttpOrigin:
    """Raises: ValueError."""
    scheme, _, path = address.partition(":")
    return HttpOrigin.of_socket(path) if scheme == "unix" else Address.of(address).origin
