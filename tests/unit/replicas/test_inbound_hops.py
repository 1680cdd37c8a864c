"""The responses of a holder to another replica, and the reports of their delivery."""

import pytest

from emceepee.guard.caller_identity import CallerIdentity
from emceepee.replicas import inbound_hops
from emceepee.replicas.delivery_reports import DeliveryReport
from emceepee.replicas.inbound_hops import GONE_SECONDS, HopExchange, InboundHops
from emceepee.replicas.signature import Hop, SigningReplica
from support.fakes.clock import FakeClock
from support.in_process.http_endpoint import OpenConnection

ANN, BEN = b"ann", b"ben"


def hop(number: int, *read: int, instance: bytes = ANN, slot: int = 1) -> Hop:
    return Hop(CallerIdentity(), SigningReplica(slot, 7), instance, number, DeliveryReport(read=read))


class Holder:
    """Serves hops and records the numbers of unread responses."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.hops = InboundHops(self.clock)
        self.unread: list[int] = []

    def begin(self, number: int, *read: int, instance: bytes = ANN, slot: int = 1) -> HopExchange:
        exchange = self.hops.begin(hop(number, *read, instance=instance, slot=slot), OpenConnection())
        exchange.if_unread(lambda: self.unread.append(number))
        return exchange

    def serve(self, number: int, *read: int, instance: bytes = ANN, slot: int = 1) -> None:
        exchange = self.begin(number, *read, instance=instance, slot=slot)
        self.hops.finish(hop(number, instance=instance), exchange)

    def settle(self, *, read: tuple[int, ...] = (), unread: tuple[int, ...] = (), is_farewell: bool = False) -> None:
        self.hops.settle(hop(1000), DeliveryReport(read=read, unread=unread), is_farewell=is_farewell)

    def kept(self) -> int:
        return sum(len(sender.exchanges) for sender in self.hops._known.values())


@pytest.fixture
def holder() -> Holder:
    return Holder()


def test_responses_that_were_read_are_forgotten_by_their_holder(holder: Holder) -> None:
    holder.serve(1)
    holder.serve(2)
    holder.settle(read=(1,))
    holder.serve(3, 2)
    assert holder.kept() == 1
    holder.settle(unread=(1, 2))
    assert holder.unread == []


def test_an_unread_response_is_reported_once(holder: Holder) -> None:
    holder.serve(1)
    holder.settle(unread=(1, 4))
    holder.settle(unread=(1,))
    assert holder.unread == [1]


def test_nothing_is_stored_for_a_request_without_delivery_tracking(holder: Holder) -> None:
    exchange = holder.hops.begin(hop(1), OpenConnection())
    holder.hops.finish(hop(1), exchange)
    assert holder.kept() == 0


def test_a_caller_reported_as_gone_is_gone_before_its_socket_closes(holder: Holder) -> None:
    exchange = holder.begin(1)
    assert not exchange.is_gone()
    holder.settle(unread=(1,))
    assert exchange.is_gone()
    assert holder.unread == [1]


async def test_a_sender_without_a_connection_is_gone_after_a_timeout(holder: Holder) -> None:
    holder.hops.join(hop(1))
    holder.serve(1)
    holder.hops.leave(ANN)
    await holder.clock.advance(GONE_SECONDS - 0.1)
    assert holder.unread == []
    await holder.clock.advance(0.2)
    assert holder.unread == [1]
    assert repr(holder.hops) == "<InboundHops []>"


async def test_a_sender_that_opens_another_connection_is_not_gone(holder: Holder) -> None:
    holder.hops.join(hop(1))
    holder.serve(1)
    holder.hops.leave(ANN)
    holder.hops.join(hop(2))
    await holder.clock.advance(10 * GONE_SECONDS)
    assert holder.unread == []


async def test_the_end_of_one_of_several_connections_does_not_mark_the_sender_as_gone(holder: Holder) -> None:
    holder.hops.join(hop(1))
    holder.hops.join(hop(2))
    holder.serve(1)
    holder.hops.leave(ANN)
    await holder.clock.advance(10 * GONE_SECONDS)
    assert holder.unread == []


async def test_after_a_farewell_all_other_responses_count_as_read(holder: Holder) -> None:
    holder.hops.join(hop(1))
    holder.serve(1)
    holder.serve(2)
    holder.settle(unread=(2,), is_farewell=True)
    holder.hops.leave(ANN)
    await holder.clock.advance(10 * GONE_SECONDS)
    assert holder.unread == [2]


async def test_a_sender_that_was_only_paused_continues_on_its_open_connections(holder: Holder) -> None:
    holder.hops.join(hop(1))
    holder.serve(1)
    holder.hops.drop(SigningReplica(1, 7))
    assert holder.unread == [1]
    holder.serve(2)
    holder.hops.join(hop(3))
    holder.hops.leave(ANN)
    await holder.clock.advance(10 * GONE_SECONDS)
    assert holder.unread == [1], "one connection is left"
    holder.hops.leave(ANN)
    await holder.clock.advance(GONE_SECONDS)
    assert holder.unread == [1, 2]
    assert repr(holder.hops) == "<InboundHops []>"


def test_a_sender_whose_lease_has_lapsed_is_gone_despite_open_connections(holder: Holder) -> None:
    holder.hops.join(hop(1))
    holder.serve(1)
    holder.serve(2, instance=BEN, slot=2)
    holder.hops.drop(SigningReplica(1, 6))
    assert holder.unread == []
    holder.hops.drop(SigningReplica(1, 7))
    assert holder.unread == [1]
    holder.hops.leave(ANN)  # an unknown sender changes nothing


def test_a_holder_tracks_a_limited_number_of_responses(holder: Holder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inbound_hops, "MOST_KEPT", 3)
    for number in range(10):
        holder.serve(number)
    assert holder.kept() == 3
    holder.settle(unread=tuple(range(10)))
    assert holder.unread == [7, 8, 9]


class WatchedConnection(OpenConnection):
    """Counts the aborts of its response."""

    aborts = 0

    def abort_response(self) -> None:
        self.aborts += 1


def test_a_response_for_a_sender_wrongly_presumed_gone_aborts_its_connection(holder: Holder) -> None:
    """The store was unavailable, and the lease of the sender had briefly lapsed."""
    below = WatchedConnection()
    holder.hops.join(hop(1))
    exchange = holder.hops.begin(hop(1), below)
    holder.hops.drop(SigningReplica(1, 7))
    assert exchange.is_gone()
    exchange.give_up_response()
    assert below.aborts == 1
