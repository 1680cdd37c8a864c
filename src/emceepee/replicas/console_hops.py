"""The console across replicas: pages show the sessions of other replicas, and other replicas those of this one."""

from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial

from emceepee.clock import Clock, give_up_after
from emceepee.console.console_app import ConsoleApp
from emceepee.console.peers import Peer, PeerAnswer, PeerLost, PeerRequest
from emceepee.guard.caller_identity import CallerIdentity
from emceepee.replicas.forwarder import Forwarder, NotAnswered
from emceepee.replicas.signature import SignedMessage
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.request_forwarder import ForwardOutcome
from emceepee.sessions.directory.placement import Placement
from emceepee.state.limits import Limits
from emceepee.state.replica import Replica

LARGEST_ANSWER = 64 << 20  # bytes; all requests that a replica stores, with their arguments, or else a recording
RECORDING_GROWTH = 3  # at most: a recording is JSON inside a JSON string
FEED_TARGET = b"/console/feed"
_HOST = b"host: replica\r\n"
_JSON = b"content-type: application/json\r\n"
_page = partial(CallerIdentity, is_proven=True, is_page=True)


class ReplicaConsoles:
    """The consoles of the other replicas (`PeerConsoles`)."""

    def __init__(self, forwarder: Forwarder, placement: Placement, clock: Clock, limits: Limits) -> None:
        self._forwarder, self._placement, self._clock, self._limits = forwarder, placement, clock, limits

    @property
    def peers(self) -> Sequence[Peer]:
        return [_name(replica) for replica in self._placement.others]

    def watch(self, watcher: Callable[[], None]) -> None:
        self._placement.watch(watcher)

    def unwatch(self, watcher: Callable[[], None]) -> None:
        self._placement.unwatch(watcher)

    async def feed(self, peer: Peer, principal: str) -> AsyncGenerator[bytes, None]:
        """Raises: PeerLost."""
        message = SignedMessage(b"GET", FEED_TARGET, _HOST, b"")
        try:
            async with self._forwarder.ask(self._find(peer), message, _page(principal)) as response:
                if response.status != 200:
                    raise PeerLost(f"it answered {response.status}")
                while piece := await response.readany():
                    yield piece
        except NotAnswered as error:
            raise PeerLost(str(error)) from None

    async def ask(self, peer: Peer, request: PeerRequest, *, within: float) -> PeerAnswer | None:
        """Raises: PeerLost."""
        headers = _HOST + _JSON if request.body else _HOST
        message = SignedMessage(request.method.encode(), request.target.encode(), headers, request.body)
        largest = max(LARGEST_ANSWER, RECORDING_GROWTH * self._limits.recording_bytes)
        try:
            async with (
                give_up_after(self._clock, within),
                self._forwarder.ask(self._find(peer), message, _page(request.principal)) as response,
            ):
                return PeerAnswer(response.status, await response.read(largest))
        except NotAnswered as error:
            if error.outcome is ForwardOutcome.LOST:
                raise PeerLost(str(error)) from None
            return None
        except TimeoutError:
            raise PeerLost(f"no answer within {within:g} s") from None

    def _find(self, peer: Peer) -> Replica:
        """Return the replica. Raises: NotAnswered if it is gone."""
        for replica in self._placement.others:
            if _name(replica) == peer:
                return replica
        raise NotAnswered(ForwardOutcome.UNREACHABLE)


class ConsoleHops:
    """Serves the console to other replicas (`HopTarget`)."""

    def __init__(self, console: ConsoleApp) -> None:
        self._console = console

    async def serve_hop(self, request: HttpRequest, body: bytes) -> bool:
        principal = request.identity.principal
        return await self._console.serve_peer(request.scope, body, request.receive, request.send, principal=principal)


def _name(replica: Replica) -> Peer:
    return Peer(f"{replica.slot}.{replica.epoch}")
