"""uvicorn with a shutdown that does not wait for open streams."""

import asyncio
import signal
import socket
import ssl
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from functools import partial
from types import FrameType
from typing import Any, Protocol, cast

import uvicorn

from emceepee.lifecycle import CLOSE_TASKS_SECONDS
from emceepee.server.garbage_collector import freeze_startup_objects
from emceepee.server.http.connection_table import ConnectionTable
from emceepee.server.http.server_connection import ServerConnection
from emceepee.server.stop_signals import stop_signals
from emceepee.state.limits import Limits
from emceepee.web.asgi import Receive, Scope, Send

BACKLOG = 2048
AsgiApp = Callable[[Scope, Receive, Send], Awaitable[None]]


class DrainingApp(Protocol):
    """An ASGI application that supports graceful shutdown."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...

    def drain(self) -> None:
        """Accept nothing new, and end streams that would not end by themselves."""
        ...

    @property
    def is_draining(self) -> bool: ...

    @property
    def is_over(self) -> bool:
        """Whether shutdown waits for no more requests."""
        ...


class ListeningServer(uvicorn.Server):
    """Ticks its connection table, reports when it listens, and leaves signals to its owner."""

    def __init__(self, config: uvicorn.Config, table: ConnectionTable, ready: Callable[[], Awaitable[None]]) -> None:
        super().__init__(config)
        self._table, self._ready = table, ready

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        yield

    async def on_tick(self, counter: int) -> bool:
        self._table.catch_up(asyncio.get_running_loop().time())
        return await super().on_tick(counter)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Report readiness. Signals are handled by now, so a process that learns of it may send one."""
        await super().startup(sockets)
        await self._ready()


class _CallerServer(ListeningServer):
    """Ends streams as soon as shutdown begins: uvicorn alone would wait for them.

    Unlike uvicorn, it does not raise the signal again at the end, because backends must still be stopped.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        endpoint: DrainingApp,
        table: ConnectionTable,
        ready: Callable[[], Awaitable[None]],
        stopped: asyncio.Event | None = None,
    ) -> None:
        super().__init__(config, table, ready)
        self._endpoint, self._stopped = endpoint, stopped
        self._was_signalled = False

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        if self._stopped is not None:
            yield  # the owner handles signals
            return
        before = {number: signal.signal(number, self.handle_exit) for number in stop_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    async def on_tick(self, counter: int) -> bool:
        """Keep listening while calls finish: new requests get a 503."""
        if self._stopped is not None and self._stopped.is_set():
            self._endpoint.drain()
        if self._endpoint.is_draining and (self._endpoint.is_over or not self.server_state.tasks):
            self.should_exit = True
        return await super().on_tick(counter)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if self._was_signalled and sig == signal.SIGINT:  # a user at a terminal will not wait
            self.should_exit = self.force_exit = True
        self._was_signalled = True
        asyncio.get_running_loop().call_soon_threadsafe(self._endpoint.drain)


async def serve_http(
    endpoint: DrainingApp,
    *,
    host: str,
    port: int,
    limits: Limits,
    announce: Callable[[str], Awaitable[None]],
    listener: socket.socket | None = None,
    stopped: asyncio.Event | None = None,
    shares_port: bool = False,
) -> None:
    """Serve until a stop signal, or until `stopped` if the owner handles signals.

    A given `listener` already listens on host and port. With `shares_port`, other processes of this user listen on the
    same port, and each gets some of the connections.

    Raises:
        OSError: the address is in use or not available.
    """
    listener = listener or listen_on(host, port, shares_port=shares_port)
    table = ConnectionTable(limits)
    config = server_config(endpoint, partial(ServerConnection, table=table))
    address = url_of(host, listener)
    if stopped is None:  # this process only serves
        freeze_startup_objects()
    await _CallerServer(config, endpoint, table, lambda: announce(address), stopped).serve(sockets=[listener])


def server_config(
    app: AsgiApp, connection: Callable[..., ServerConnection], tls: ssl.SSLContext | None = None
) -> uvicorn.Config:
    """Return the configuration of a server that uses our connections; pass `tls` if it accepts only TLS."""
    config = uvicorn.Config(
        cast(Any, app),
        log_config=None,
        access_log=False,
        lifespan="off",
        http=cast(type[asyncio.Protocol], connection),
        ws="none",
        server_header=False,
        date_header=False,
        proxy_headers=False,
        timeout_graceful_shutdown=round(CLOSE_TASKS_SECONDS),
    )
    if tls is not None:
        config.load()  # this would create a TLS context of its own
        config.ssl = tls
    return config


def url_of(host: str, listener: socket.socket, *, is_tls: bool = False) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"{'https' if is_tls else 'http'}://{shown}:{listener.getsockname()[1]}"


def listen_on(host: str, port: int, *, shares_port: bool = False) -> socket.socket:
    """Listen. With `shares_port`, other processes share the port and its connections. Raises: OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shares_port:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener.bind((host, port))
    except BaseException:
        listener.close()
        raise
    listener.listen(BACKLOG)
    listener.setblocking(False)
    return listener
