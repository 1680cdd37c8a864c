"""The console of one replica at another, over real sockets."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass, field, replace

import pytest

from emceepee.console.peers import Peer, PeerAnswer, PeerLost, PeerRequest
from emceepee.guard.caller_identity import CallerIdentity
from emceepee.replicas import console_hops
from emceepee.replicas.console_hops import ReplicaConsoles
from emceepee.replicas.forwarder import Forwarder
from emceepee.replicas.hop_app import HopParts
from emceepee.replicas.listener import bind
from emceepee.server.http.exchange import HttpRequest
from emceepee.sessions.directory.placement import Placement
from emceepee.state.limits import Limits
from emceepee.state.replica import Replica
from emceepee.web.asgi import respond_json
from emceepee.wire.codec import encode
from support.fakes.clock import FakeClock
from support.in_process.hops import KEY, HeldStream, ScriptedHolder, echo
from support.waiting import eventually

ANSWER = PeerRequest(principal="ada@läden", method="POST", target="/console/answer?x=1%20", body=b'{"a":1}')
LOOK = PeerRequest(principal="ada@läden", method="GET", target="/console/task?id=1")


class FixedPlacement(Placement):
    """Knows the one other replica that the test names."""

    def __init__(self, other: Replica) -> None:
        self.known = [other]
        self.watchers: list[Callable[[], None]] = []

    @property
    def others(self) -> list[Replica]:
        return self.known

    def watch(self, watcher: Callable[[], None]) -> None:
        self.watchers.append(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        self.watchers = [each for each in self.watchers if each is not watcher]


@dataclass
class Asking:
    """One that asks, and the console of the other, which does as the test says."""

    consoles: ReplicaConsoles
    placement: FixedPlacement
    forwarder: Forwarder
    clock: FakeClock
    console: ScriptedHolder = field(default_factory=ScriptedHolder)

    @property
    def peer(self) -> Peer:
        [peer] = self.consoles.peers
        return peer

    async def ask(self, request: PeerRequest) -> PeerAnswer | None:
        return await self.consoles.ask(self.peer, request, within=5)


@pytest.fixture
async def asking() -> AsyncIterator[Asking]:
    clock, console = FakeClock(), ScriptedHolder()
    own = Replica(slot=1, epoch=7, address="")
    with bind(None) as bound:
        other = Replica(slot=2, epoch=9, address=bound.address)
        placement = FixedPlacement(other)
        parts = HopParts(
            clock=clock, key=KEY, own=lambda: other, endpoint=ScriptedHolder(), console=console, body_bytes=1 << 20
        )
        async with (
            bound.serve(parts, Limits()),
            Forwarder.running(clock, key=KEY, own=lambda: own) as forwarder,
        ):
            consoles = ReplicaConsoles(forwarder, placement, clock, Limits(recording_bytes=1000))
            yield Asking(consoles, placement, forwarder, clock, console)


async def test_a_console_request_reaches_the_other_replica_with_its_principal_and_is_answered(asking: Asking) -> None:
    asking.console.serve = echo
    assert await asking.ask(ANSWER) == PeerAnswer(200, b'{"a":1}')
    [request] = asking.console.requests
    assert request.identity == CallerIdentity("ada@läden", is_proven=True, is_page=True)
    assert (request.scope["method"], request.scope["path"], request.query) == ("POST", "/console/answer", b"x=1%20")
    assert request.headers[b"content-type"] == b"application/json"


async def test_consecutive_console_requests_between_replicas_share_a_connection(asking: Asking) -> None:
    for _ in range(5):
        await asking.ask(LOOK)
    assert len(asking.forwarder._parts.pool.open) == 1


async def test_an_error_of_the_other_replica_is_returned_unchanged(asking: Asking) -> None:
    async def refuse(request: HttpRequest, body: bytes) -> bool:
        await respond_json(request.send, 404, {"error": "no such task"})
        return True

    asking.console.serve = refuse
    assert await asking.ask(LOOK) == PeerAnswer(404, b'{"error":"no such task"}')


async def test_a_recording_of_any_permitted_size_arrives_from_the_other_replica(
    asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(console_hops, "LARGEST_ANSWER", 100)
    asking.console.serve = echo
    saved = replace(ANSWER, body=encode({"recording": '"' * 1000}))
    assert await asking.ask(saved) == PeerAnswer(200, saved.body)
    with pytest.raises(PeerLost):
        await asking.ask(replace(ANSWER, body=encode({"other": "x" * 4000})))


async def test_a_replica_without_the_session_reports_that_the_action_did_not_run(asking: Asking) -> None:
    async def not_here(request: HttpRequest, body: bytes) -> bool:
        return False

    asking.console.serve = not_here
    assert await asking.ask(ANSWER) is None


async def test_an_unreachable_replica_is_reported_as_an_action_that_did_not_run(asking: Asking) -> None:
    asking.placement.known = [Replica(slot=3, epoch=1, address="unix:/nowhere/hop")]
    assert await asking.ask(ANSWER) is None
    assert await asking.consoles.ask(Peer("2.8"), ANSWER, within=5) is None


async def test_a_replica_that_does_not_answer_is_reported_as_an_action_that_may_have_run(asking: Asking) -> None:
    begun, is_over = asyncio.Event(), asyncio.Event()

    async def hang(request: HttpRequest, body: bytes) -> bool:
        begun.set()
        await is_over.wait()
        return await echo(request, body)

    asking.console.serve = hang
    waiting = asyncio.ensure_future(asking.ask(ANSWER))
    await asyncio.wait_for(begun.wait(), 10)
    await asking.clock.advance(5)
    with pytest.raises(PeerLost, match="5 s"):
        await asyncio.wait_for(waiting, 10)
    begun.clear()
    waiting = asyncio.ensure_future(asking.ask(ANSWER))
    await asyncio.wait_for(begun.wait(), 10)
    asking.forwarder.drop(asking.placement.known[0])
    with pytest.raises(PeerLost):
        await asyncio.wait_for(waiting, 10)
    is_over.set()  # otherwise the shutdown waits for the hanging request


# Its feed.


async def test_a_feed_between_replicas_arrives_as_it_is_written_and_its_close_reaches_the_sender(
    asking: Asking,
) -> None:
    stream = HeldStream()
    asking.console.serve = stream.serve
    async with aclosing(asking.consoles.feed(asking.peer, "ada")) as pieces:
        for part in (b"one", b"two"):
            coming = asyncio.ensure_future(anext(pieces))
            await eventually(lambda: stream.request is not None, what="it is served")
            await stream.write(part)
            assert await asyncio.wait_for(coming, 10) == part
        [request] = asking.console.requests
        assert (request.scope["path"], request.identity.principal) == ("/console/feed", "ada")
    await asyncio.wait_for(stream.was_left.wait(), 10)


async def test_the_feed_of_a_lost_replica_breaks_off(asking: Asking) -> None:
    stream = HeldStream()
    asking.console.serve = stream.serve
    async with aclosing(asking.consoles.feed(asking.peer, "ada")) as pieces:
        coming = asyncio.ensure_future(anext(pieces))
        await eventually(lambda: stream.request is not None, what="it is served")
        asking.forwarder.drop(asking.placement.known[0])
        with pytest.raises(PeerLost):
            await asyncio.wait_for(coming, 10)


@pytest.mark.parametrize("status", [404, 503])
async def test_a_response_that_is_not_an_event_stream_is_rejected_as_a_feed(asking: Asking, status: int) -> None:
    async def refuse(request: HttpRequest, body: bytes) -> bool:
        await respond_json(request.send, status, {})
        return True

    asking.console.serve = refuse
    with pytest.raises(PeerLost, match=str(status)):
        await anext(asking.consoles.feed(asking.peer, "ada"))


async def test_a_watcher_is_notified_of_replicas_that_join_and_leave(asking: Asking) -> None:
    heard: list[int] = []

    def hear() -> None:
        heard.append(1)

    asking.consoles.watch(hear)
    for report in asking.placement.watchers:
        report()
    asking.consoles.unwatch(hear)
    asking.consoles.unwatch(hear)
    assert (heard, asking.placement.watchers) == ([1], [])
