"""A backend on HTTP whose every word the test decides, at the moment it decides."""

import asyncio
import itertools
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

BOUND = 60.0  # seconds until a call arrives on a busy machine: its caller may have to start first
TOOLS = [
    {"name": name, "description": f"{name}s", "inputSchema": {"type": "object"}} for name in ("echo", "wait", "env")
]


class WebCall:
    """One call of `wait` that has arrived: it progresses and ends when the test says so."""

    def __init__(self, message: dict[str, Any]) -> None:
        self.message = message
        self.was_cancelled = asyncio.Event()
        self.was_dropped = asyncio.Event()
        self._says: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()

    @property
    def token(self) -> Any:
        return self.message["params"]["_meta"]["progressToken"]

    def progress(self, first: int, last: int) -> None:
        """Report the steps from `first` to `last`, at once."""
        for step in range(first, last + 1):
            told = {"progressToken": self.token, "progress": step, "total": 100}
            self._says.put_nowait({"jsonrpc": "2.0", "method": "notifications/progress", "params": told})

    def notify(self, method: str, **params: Any) -> None:
        self._says.put_nowait({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, key: str, method: str, **params: Any) -> None:
        """On the stream of the call; what is answered is in the backend's `answers`."""
        self._says.put_nowait({"jsonrpc": "2.0", "id": key, "method": method, "params": params})

    def finish(self, text: str = "done") -> None:
        self._says.put_nowait({"jsonrpc": "2.0", "id": self.message["id"], "result": said(text)})
        self._says.put_nowait(None)

    async def write(self, response: web.StreamResponse) -> None:
        try:
            said = [await self._says.get()]
            while said:
                while not self._says.empty():
                    said.append(self._says.get_nowait())
                frames = [b"event: message\ndata: %s\n\n" % json.dumps(each).encode() for each in said if each]
                await response.write(b"".join(frames))
                said = [] if said[-1] is None else [await self._says.get()]
        except (asyncio.CancelledError, ConnectionError):
            self.was_dropped.set()
            raise


class WebBackend:
    """`wait` waits for the test, any other tool repeats its arguments at once. Speaks 2025-11-25.

    A test that empties `sessions` has it forget its clients, as a restart would.
    """

    def __init__(self) -> None:
        self.url, self.port = "", 0
        self.calls: list[WebCall] = []
        self.sessions: set[str] = set()
        self.capabilities: dict[str, Any] = {"tools": {}}
        self.asked: list[tuple[str, dict[str, Any]]] = []  # each request, and what it was about
        self.answers: dict[str, dict[str, Any]] = {}  # to what it asked itself
        self.steps_at_once = 0  # which a call reports as soon as it arrives
        self._streams: list[asyncio.Queue[dict[str, Any]]] = []
        self._unseen: asyncio.Queue[WebCall] = asyncio.Queue()
        self._numbers = itertools.count(1)

    async def next_call(self) -> WebCall:
        return await asyncio.wait_for(self._unseen.get(), BOUND)

    @property
    def streams(self) -> int:
        """On how many it can be pushed."""
        return len(self._streams)

    def push(self, message: dict[str, Any]) -> None:
        """Say it without being asked, to everyone who listens."""
        for stream in self._streams:
            stream.put_nowait({"jsonrpc": "2.0", **message})

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.method == "DELETE":
            self.sessions.discard(request.headers.get("mcp-session-id", ""))
            return web.Response()
        if request.method == "GET":
            return await self._pushes(request)
        if request.headers.get("mcp-session-id", "") not in {"", *self.sessions}:
            return web.Response(status=404)
        message = await request.json()
        method = message.get("method")
        if method == "notifications/cancelled":
            for call in self.calls:
                if call.message["id"] == message["params"]["requestId"]:
                    call.was_cancelled.set()
        if method is None:
            self.answers[message["id"]] = message
        if "id" not in message or method is None:
            return web.Response(status=202)
        self.asked.append((method, message.get("params") or {}))
        if method == "tools/call" and message["params"]["name"] == "wait":
            return await self._wait(request, message)
        headers = {}
        if method == "initialize":
            headers["mcp-session-id"] = f"backend-{next(self._numbers)}"
            self.sessions.add(headers["mcp-session-id"])
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        result = self._result(method, message.get("params") or {})
        unknown = {"error": {"code": -32601, "message": f"no {method} here"}}
        return web.json_response(body | (unknown if result is None else {"result": result}), headers=headers)

    def _result(self, method: str, params: dict[str, Any]) -> dict[str, Any] | None:
        if method == "initialize":
            info = {"name": "web-backend", "version": "1"}
            return {"protocolVersion": "2025-11-25", "capabilities": self.capabilities, "serverInfo": info}
        known = {"tools/list": {"tools": TOOLS}, "ping": {}}
        if "resources" in self.capabilities:
            known |= {"resources/subscribe": {}, "resources/unsubscribe": {}}
        if "logging" in self.capabilities:
            known["logging/setLevel"] = {}
        if method == "tools/call":
            return said(json.dumps(params.get("arguments")))
        return known.get(method)

    async def _wait(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        call = WebCall(message)
        self.calls.append(call)
        call.progress(1, self.steps_at_once)
        self._unseen.put_nowait(call)
        await call.write(response)
        return response

    async def _pushes(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        pushed: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._streams.append(pushed)
        try:
            while True:  # the line stays open until one side goes
                await response.write(b"event: message\ndata: %s\n\n" % json.dumps(await pushed.get()).encode())
        finally:
            self._streams.remove(pushed)


def said(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


@asynccontextmanager
async def a_web_backend(*, tls: ssl.SSLContext | None = None, path: Path | None = None) -> AsyncIterator[WebBackend]:
    """The backend on a free port of this machine, or on a Unix socket at `path`."""
    backend = WebBackend()
    application = web.Application()
    application.router.add_route("*", "/mcp", backend.serve)
    runner = web.AppRunner(application, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
    await runner.setup()
    if path is not None:
        await web.UnixSite(runner, str(path)).start()
        backend.url = f"unix://{path}:/mcp"
    else:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        backend.port = runner.addresses[0][1]
        backend.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{backend.port}/mcp"
    try:
        yield backend
    finally:
        await runner.cleanup()
