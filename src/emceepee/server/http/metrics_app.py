"""`/metrics`, on the port for callers or on a port of its own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

from emceepee.guard.access_control import AccessControl
from emceepee.guard.caller_identity import Rejection
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, CLOSE_TASKS_SECONDS, TaskOwner
from emceepee.server.http.connection_table import ConnectionTable
from emceepee.server.http.server_connection import ServerConnection
from emceepee.server.http.uvicorn_server import ListeningServer, listen_on, server_config, url_of
from emceepee.server.metrics import CONTENT_TYPE, METRICS_PATH, Metrics
from emceepee.state.limits import Limits
from emceepee.web.asgi import Headers, Receive, Scope, Send, respond, respond_json

_PROOF = "Metrics are for programs on this machine, or with the token in a header: Authorization: Bearer …"
_PAGE = "Metrics are not for web pages."


class MetricsApp:
    """Serves the metrics to callers that may use /mcp, but not to web pages."""

    def __init__(self, metrics: Metrics, gate: AccessControl) -> None:
        self._metrics, self._gate = metrics, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve as an application of its own."""
        if scope["type"] != "http":
            return
        headers = dict(scope["headers"])
        if (misplaced := self._gate.check_host_and_origin(headers)) is not None:
            await _reject(send, misplaced)
        elif scope["path"] != METRICS_PATH:
            await respond_json(send, 404, {"error": f"Not found. Metrics are at {METRICS_PATH}."})
        else:
            await self.serve(scope, headers, send)

    async def serve(self, scope: Scope, headers: Headers, send: Send) -> None:
        """Serve a request whose Host and Origin were checked."""
        if scope["method"] != "GET":
            await respond_json(send, 405, {"error": "Method not allowed"}, (b"allow", b"GET"))
            return
        peer = scope.get("client")
        identity = await self._gate.admit(headers, peer[0] if peer else None, method=scope["method"])
        if isinstance(identity, Rejection):
            await _reject(send, identity)
        elif identity.is_page:
            await _reject(send, Rejection(403, _PAGE))
        elif identity.is_remote and not identity.is_proven:
            await _reject(send, Rejection(403, _PROOF))
        else:
            await respond(send, 200, self._metrics.text(), (b"content-type", CONTENT_TYPE))


async def _reject(send: Send, why: Rejection) -> None:
    await respond_json(send, why.status, {"error": why.message}, *why.headers)


@asynccontextmanager
async def metrics_listener(
    app: MetricsApp, host: str, port: int, limits: Limits, announce: Callable[[str], object]
) -> AsyncIterator[None]:
    """Raises: OSError if the address is in use or not available."""
    listener, tasks, ready = listen_on(host, port), TaskOwner("metrics"), asyncio.Event()
    table = ConnectionTable(limits)

    async def is_ready() -> None:
        announce(f"{url_of(host, listener)}{METRICS_PATH}")
        ready.set()

    server = ListeningServer(server_config(app, partial(ServerConnection, table=table)), table, is_ready)
    serving = tasks.spawn(server.serve(sockets=[listener]), name="serve")
    serving.add_done_callback(lambda _: ready.set())
    try:
        await ready.wait()
        yield
    finally:
        server.should_exit = True
        await asyncio.wait({serving}, timeout=CLOSE_TASKS_SECONDS)
        await tasks.close(within=CLOSE_IDLE_SECONDS)
        listener.close()
