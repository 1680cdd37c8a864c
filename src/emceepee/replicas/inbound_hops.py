"""The replicas that forward requests to this one: their requests in progress, and the responses that are not read yet.

For an application, a forwarded request has a connection like any other (`CallerConnection`), but this cannot be the
socket's connection. Many callers share that, so neither its next request nor its end shows that a response was read.

served ──▶ response passed back ──▶ the sender says: written   its events count as delivered
                                    ──▶ the sender says: read      forgotten
                                    ──▶ the sender says: not read  reported
                                    ──▶ the sender is gone         reported, because the outcome is unknown

A sender is gone when it has had no connection for a while, or when the store reports it (`drop`). A sender that shuts
down in order sends a farewell, after which everything counts as read.
"""

import asyncio
from collections.abc import Callable

from emceepee.clock import Clock
from emceepee.futures import resolve
from emceepee.replicas.delivery_reports import DeliveryReport
from emceepee.replicas.signature import Hop, SigningReplica
from emceepee.state.client_line import ClientLine
from emceepee.web.asgi import CallerConnection

GONE_SECONDS = 2.0  # without a connection; a live sender that had to close its only connection opens another at once
MOST_KEPT = 10_000  # unconfirmed responses per sender; beyond it the oldest count as read


class HopExchange:
    """A forwarded request, as the connection of its caller."""

    __slots__ = ("_below", "_is_abandoned", "_is_written", "_unread_reports", "_when_written", "is_served", "line")

    def __init__(self, below: CallerConnection) -> None:
        self._below = below
        self._is_abandoned = self._is_written = False
        self._when_written: list[Callable[[], None]] = []
        self._unread_reports: list[Callable[[], None]] = []
        self.is_served = False
        self.line = ClientLine()  # until the caller's own line is known

    def is_gone(self) -> bool:
        return self._is_abandoned or self._below.is_gone()

    def give_up_response(self) -> None:
        if self._is_abandoned:  # the sender seemed to be gone; if it is alive, it waits for the response
            self._below.abort_response()
        else:
            self._below.give_up_response()

    def abort_response(self) -> None:
        self._below.abort_response()

    def hold(self, size: int) -> None:
        self._below.hold(size)

    def if_unread(self, report: Callable[[], None], *, if_read: Callable[[], None] | None = None) -> None:
        assert if_read is None, "a request is passed on once"
        self._unread_reports.append(report)

    def when_written(self, report: Callable[[], None]) -> None:
        if self._is_written or self._is_abandoned:  # then another connection took over the response
            report()
        else:
            self._when_written.append(report)

    @property
    def has_reports(self) -> bool:
        """Whether a callback waits for the report that the response was not read."""
        return bool(self._unread_reports)

    @property
    def is_on_the_way(self) -> bool:
        """Whether it is being served, or a callback waits until its response is written."""
        return not self.is_served or bool(self._when_written)

    def report_written(self) -> None:
        self._is_written = True
        reports, self._when_written = self._when_written, []
        for report in reports:
            report()

    def report_unread(self) -> None:
        """Report the response as unread. The caller is gone, although the socket may not show it yet."""
        self._is_abandoned = True
        self._when_written = []
        reports, self._unread_reports = self._unread_reports, []
        for report in reports:
            report()


class _KnownSender:
    __slots__ = ("connections", "exchanges", "replica")

    def __init__(self, replica: SigningReplica) -> None:
        self.replica = replica
        self.connections = 0
        self.exchanges: dict[int, HopExchange] = {}  # by number, the oldest first

    def hear(self, news: DeliveryReport) -> None:
        for number in news.written:
            if (exchange := self.exchanges.get(number)) is not None:
                exchange.report_written()
        for number in news.read:
            if (exchange := self.exchanges.pop(number, None)) is not None:
                exchange.report_written()
        for number in news.unread:
            if (exchange := self.exchanges.pop(number, None)) is not None:
                exchange.report_unread()


class InboundHops:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[bytes, _KnownSender] = {}  # by instance
        self._all_confirmed: asyncio.Future[None] | None = None  # set while `wait_until_confirmed` waits

    def __repr__(self) -> str:
        return f"<InboundHops {[(*one.replica, one.connections, len(one.exchanges)) for one in self._known.values()]}>"

    # Their connections.

    def join(self, hop: Hop) -> None:
        """Count another connection on which the sender has signed something."""
        self._of(hop).connections += 1

    def leave(self, instance: bytes) -> None:
        """Remove one of the sender's connections, which is closed."""
        sender = self._known.get(instance)
        if sender is None:
            return
        sender.connections -= 1
        if sender.connections == 0:
            self._clock.call_later(GONE_SECONDS, lambda: self._give_up_if_gone(instance, sender))

    def _give_up_if_gone(self, instance: bytes, sender: _KnownSender) -> None:
        if sender.connections == 0 and self._known.get(instance) is sender:
            self._give_up(instance)

    # Their requests.

    def begin(self, hop: Hop, below: CallerConnection) -> HopExchange:
        sender = self._of(hop)
        sender.replica = hop.sender
        sender.hear(hop.news)
        exchange = sender.exchanges[hop.number] = HopExchange(below)
        if len(sender.exchanges) > MOST_KEPT:
            sender.exchanges.pop(next(iter(sender.exchanges))).report_written()
        return exchange

    def finish(self, hop: Hop, exchange: HopExchange) -> None:
        """Mark the request as served. Reports about its response may arrive later."""
        exchange.is_served = True
        if not exchange.has_reports and (sender := self._known.get(hop.instance)) is not None:
            sender.exchanges.pop(hop.number, None)
        self._end_wait()

    def settle(self, hop: Hop, news: DeliveryReport, *, is_farewell: bool) -> None:
        sender = self._of(hop)
        sender.hear(hop.news)
        sender.hear(news)
        if is_farewell:
            sender.hear(DeliveryReport(read=tuple(sender.exchanges)))

        self._end_wait()

    async def wait_until_confirmed(self) -> None:
        """Wait until no request is being served, and all senders have confirmed that they forwarded their responses."""
        self._all_confirmed = asyncio.get_running_loop().create_future()
        self._end_wait()
        await self._all_confirmed

    def _end_wait(self) -> None:
        if self._all_confirmed is not None and not any(
            one.is_on_the_way for sender in self._known.values() for one in sender.exchanges.values()
        ):
            resolve(self._all_confirmed, None)

    # Lost senders

    def drop(self, replica: SigningReplica) -> None:
        """Drop a lost replica, although its connections may look alive."""
        for instance in [one for one, sender in self._known.items() if sender.replica == replica]:
            self._give_up(instance)

    def _give_up(self, instance: bytes) -> None:
        sender = self._known[instance]
        exchanges, sender.exchanges = sender.exchanges, {}
        if not sender.connections:  # otherwise it may only have been paused, and continues on its connections
            del self._known[instance]
        for exchange in exchanges.values():
            exchange.report_unread()
        self._end_wait()

    def _of(self, hop: Hop) -> _KnownSender:
        sender = self._known.get(hop.instance)
        if sender is None:
            sender = self._known[hop.instance] = _KnownSender(hop.sender)
        return sender
