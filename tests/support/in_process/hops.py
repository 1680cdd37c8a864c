"""Two replicas in one process with real sockets between them: callers ask one, and the other holds every session."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from emceepee.guard.caller_identity import CallerIdentity
from emceepee.lifecycle import TaskOwner
from emceepee.replicas.forwarder import Forwarder
from emceepee.replicas.hop_app import HopParts
from emceepee.replicas.listener import BoundListener, HopListener, bind
from emceepee.server.http.connection_table import ConnectionTable
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.request_forwarder import ForwardOutcome, LostReply
from emceepee.server.http.server_connection import ServerConnection
from emceepee.server.http.uvicorn_server import ListeningServer, listen_on, server_config, url_of
from emceepee.state.limits import Limits
from emceepee.state.replica import Replica
from emceepee.web.asgi import STREAM_HEADERS, Receive, Scope, Send, read_body, respond, respond_json
from support.callers.raw_connection import RawConnection
from support.fakes.clock import FakeClock

KEY = b"a secret of all replicas, 32 long"
ADA = CallerIdentity("ada@läden", is_proven=True, is_page=True)
BODY_BYTES = 16 << 20
Serve = Callable[[HttpRequest, bytes], Awaitable[bool]]


async def echo(request: HttpRequest, body: bytes) -> bool:
    await respond(request.send, 200, body, (b"content-type", b"application/json"))
    return True


@dataclass
class ScriptedHolder:
    """Serves what is passed on as the test says, and keeps it."""

    serve: Serve = echo
    requests: list[HttpRequest] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)
    """Replies that were not read, of all passed to `keep_if_unread`."""
    written: list[str] = field(default_factory=list)
    """Replies on their way to callers, of all passed to `serve_carrying`."""

    async def serve_hop(self, request: HttpRequest, body: bytes) -> bool:
        self.requests.append(request)
        self.bodies.append(body)
        return await self.serve(request, body)

    def keep_if_unread(self, request: HttpRequest, what: str) -> None:
        request.connection.if_unread(lambda: self.unread.append(what))

    async def serve_carrying(self, request: HttpRequest, body: bytes) -> bool:
        """As a session does whose reply carries events; the body names them."""
        what = body.decode()
        self.keep_if_unread(request, what)
        await respond(request.send, 200, b"{}")
        request.connection.when_written(lambda: self.written.append(what))
        return True


class HeldStream:
    """A response of the holder that is a stream, written by the test."""

    def __init__(self, *, status: int = 200) -> None:
        self._status = status
        self.request: HttpRequest | None = None
        self.is_over = asyncio.Event()
        self.was_left = asyncio.Event()

    async def serve(self, request: HttpRequest, body: bytes) -> bool:
        start = {"type": "http.response.start", "status": self._status, "headers": [*STREAM_HEADERS]}
        await request.send(start)
        self.request = request
        while (await request.receive())["type"] != "http.disconnect":
            pass
        self.was_left.set()
        return True

    async def write(self, data: bytes, *, is_last: bool = False) -> None:
        assert self.request is not None
        await self.request.send({"type": "http.response.body", "body": data, "more_body": not is_last})


@dataclass(kw_only=True)
class Replicas:
    """Two replicas: the first receives requests, the second holds all sessions. Records the outcome of each request."""

    url: str
    clock: FakeClock
    forwarder: Forwarder
    own: Replica
    holder: Replica
    target: ScriptedHolder
    listener: HopListener
    bound: BoundListener
    table: ConnectionTable
    asked: list[HttpRequest] = field(default_factory=list)
    tasks: "list[asyncio.Task[None] | None]" = field(default_factory=list)
    outcomes: list[ForwardOutcome] = field(default_factory=list)
    lost_reply: LostReply = lambda: b'{"lost":1}'
    identity: CallerIdentity = ADA
    stop_holder: Callable[[], Awaitable[None]]
    callers: list[RawConnection] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request at the replica that receives requests."""
        body = await read_body(receive, BODY_BYTES)
        request = HttpRequest(scope, dict(scope["headers"]), receive, send, self.identity)
        self.asked.append(request)
        self.tasks.append(asyncio.current_task())
        outcome = await self.forwarder.forward(self.holder, request, body, lost_reply=self.lost_reply)
        self.outcomes.append(outcome)
        if outcome is not ForwardOutcome.ANSWERED:
            await respond_json(send, 503, {"outcome": outcome.name})

    def caller(self) -> RawConnection:
        caller = RawConnection(self.url)
        self.callers.append(caller)
        return caller

    def post(self, body: bytes = b"{}", *headers: str, target: str = "/mcp") -> RawConnection:
        """A caller that has just asked."""
        caller = self.caller()
        caller.send(post(body, *headers, target=target))
        return caller


def post(body: bytes = b"{}", *headers: str, target: str = "/mcp") -> bytes:
    lines = [f"POST {target} HTTP/1.1", "host: here", "content-type: application/json", *headers]
    return "\r\n".join([*lines, f"content-length: {len(body)}", "", ""]).encode() + body


@asynccontextmanager
async def two_replicas(
    *,
    listen: tuple[str, int] | None = None,
    server_tls: ssl.SSLContext | None = None,
    client_tls: ssl.SSLContext | None = None,
    holder_key: bytes = KEY,
) -> AsyncIterator[Replicas]:
    clock, target, own = FakeClock(), ScriptedHolder(), Replica(slot=1, epoch=7, address="")
    limits = Limits(request_body_bytes=BODY_BYTES)
    table, tasks, ready = ConnectionTable(limits), TaskOwner("front"), asyncio.Event()
    public = listen_on("127.0.0.1", 0)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(tasks.close)
        bound = stack.enter_context(bind(listen, server_tls))
        holder = Replica(slot=2, epoch=9, address=bound.address)
        parts = HopParts(clock=clock, key=holder_key, own=lambda: holder, endpoint=target, body_bytes=BODY_BYTES)
        holding = await stack.enter_async_context(AsyncExitStack())
        listener = await holding.enter_async_context(bound.serve(parts, limits))
        forwarder = await stack.enter_async_context(Forwarder.running(clock, key=KEY, own=lambda: own, tls=client_tls))
        replicas = Replicas(
            url=url_of("127.0.0.1", public),
            clock=clock,
            forwarder=forwarder,
            own=own,
            holder=holder,
            target=target,
            listener=listener,
            bound=bound,
            table=table,
            stop_holder=holding.aclose,
        )

        async def is_ready() -> None:
            ready.set()

        server = ListeningServer(server_config(replicas, partial(ServerConnection, table=table)), table, is_ready)
        serving = tasks.spawn(server.serve(sockets=[public]), name="serve")
        await ready.wait()
        try:
            yield replicas
        finally:
            for caller in replicas.callers:
                caller.cut()
            server.should_exit = True
            await asyncio.wait({serving}, timeout=10)
