"""An HTTP server in the test's own loop, in either era, that can be stopped and started and counts what ran."""

import asyncio
import itertools
import json
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal, cast

from aiohttp import web

from support.fakes.clock import settle

Era = Literal["legacy", "2026-07-28"]
OURS = object()  # in place of an id: that of the request
# How a handshake-era server says that it no longer knows a session: status, id, JSON-RPC code (0: no JSON), words.
SPELLINGS: dict[str, tuple[int, Any, int, str]] = {
    "404": (404, None, -32001, "Not Found"),
    "the reference server": (400, OURS, -32000, "Bad Request: No valid session ID provided"),
    "the TypeScript examples": (400, None, -32000, "Bad Request: No valid session ID provided"),
    "their other words": (400, None, 0, "Invalid or missing session ID"),
    "a restarted TypeScript transport": (400, None, -32000, "Bad Request: Server not initialized"),
    "the Python SDK": (404, "server-error", -32600, "Not Found: Session has been terminated"),
    "the Python SDK behind a proxy": (200, "server-error", -32600, "Session not found"),
    "nobody in particular": (200, None, -32600, "Session not found"),
}
CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {},
    "logging": {},
}
QUESTION = {
    "method": "elicitation/create",
    "params": {
        "message": "Sure?",
        "requestedSchema": {"type": "object", "properties": {"sure": {"type": "boolean"}}},
    },
}


class CountingBackend:
    """`ran` counts every tool call by its `id` argument; `seen` every request by its method."""

    def __init__(self, era: Era = "legacy", *, spelling: str = "404", get: int = 200) -> None:
        self.era, self.says_lost, self.get = era, SPELLINGS[spelling], get
        self.ran: Counter[str] = Counter()
        self.seen: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []  # of every request
        self.starts = 0
        self.port = 0
        self.tools = ["echo", "hang", "ask"]
        self.question = QUESTION  # of `ask`
        self.subscribed: list[str] = []
        self.arrived = asyncio.Event()  # set whenever a request came
        self.waiting = 0  # calls of `wait` that came
        self.release = asyncio.Event()  # lets them go on
        self._held: dict[str, asyncio.Event] = {}
        self._numbers = itertools.count(1)
        self._sessions: set[str] = set()
        self._streams: list[web.StreamResponse] = []
        self._answers: dict[Any, asyncio.Future[Any]] = {}
        self._runner: web.AppRunner | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/mcp", self._serve)
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.01, access_log=None)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True)
        await site.start()
        self.port = self._runner.addresses[0][1]
        self.starts += 1

    async def stop(self) -> None:
        """As a crash: every connection breaks, every session is forgotten."""
        runner, self._runner = self._runner, None
        self._sessions.clear()
        self._streams.clear()
        self.subscribed.clear()
        if runner is not None:
            await _stop_accepting(runner)
            for site in list(runner.sites):
                await site.stop()
            for connection in list(runner.server.connections if runner.server else ()):
                if connection.transport is not None:
                    connection.transport.abort()
            await runner.cleanup()

    async def restart(self) -> None:
        await self.stop()
        await self.start()

    def forget_sessions(self) -> None:
        """As a restart that nobody noticed."""
        self._sessions.clear()

    async def until_seen(self, method: str, count: int = 1) -> None:
        await self.until(lambda: self.seen[method] >= count)

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(30):
            while not is_so():
                self.arrived.clear()
                await self.arrived.wait()

    async def push(self, method: str, params: dict[str, Any] | None = None) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params or {}}
        for stream in list(self._streams):
            await _event(stream, message)

    def let_go(self, call_id: str) -> None:
        """Finish a call of `hold`, even if it has not arrived yet."""
        self._held.setdefault(call_id, asyncio.Event()).set()

    # Serving.

    async def _serve(self, request: web.Request) -> web.StreamResponse:
        self.headers.append({name.lower(): value for name, value in request.headers.items()})
        session = request.headers.get("mcp-session-id")
        if request.method == "DELETE":
            self._sessions.discard(session or "")
            return web.Response(status=200)
        if request.method == "GET":
            return await self._push_stream(request, session)
        message = json.loads(await request.read())
        method = message.get("method")
        self.seen[method or "answer"] += 1
        self.arrived.set()
        if self.era == "legacy" and method not in ("initialize", "server/discover") and session not in self._sessions:
            status, key, code, words = self.says_lost
            return _refusal(status, message.get("id") if key is OURS else key, code, words)
        if method is None:
            self._answers.pop(message["id"]).set_result(message)
        if "id" not in message or method is None:
            return web.Response(status=202)
        return await self._answer(request, message, message.get("params") or {})

    async def _push_stream(self, request: web.Request, session: str | None) -> web.StreamResponse:
        if self.era != "legacy" or self.get != 200:
            return web.Response(status=405 if self.era != "legacy" else self.get)
        if session not in self._sessions:
            return web.Response(status=self.says_lost[0])
        stream = await _stream(request)
        self._streams.append(stream)
        self.seen["GET"] += 1
        self.arrived.set()
        await asyncio.Event().wait()
        return stream

    async def _answer(
        self, request: web.Request, message: dict[str, Any], params: dict[str, Any]
    ) -> web.StreamResponse:
        key, headers = message["id"], {}
        match message["method"]:
            case "server/discover" if self.era == "legacy":
                error = {"code": -32601, "message": "Method not found"}
                return web.json_response({"jsonrpc": "2.0", "id": key, "error": error}, status=400)
            case "server/discover":
                info = {"name": "counting", "version": "1"}
                result: dict[str, Any] = {
                    "supportedVersions": ["2026-07-28"],
                    "capabilities": CAPABILITIES,
                    "serverInfo": info,
                }
            case "initialize":
                session = f"{self.starts}-{next(self._numbers)}"
                self._sessions.add(session)
                headers = {"mcp-session-id": session}
                info = {"name": "counting", "version": "1"}
                version = params["protocolVersion"]
                result = {"protocolVersion": version, "capabilities": CAPABILITIES, "serverInfo": info}
            case "tools/list":
                result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]}
            case "resources/subscribe":
                self.subscribed.append(params["uri"])
                result = {}
            case "subscriptions/listen":
                return await self._listen(request, key, params)
            case "tools/call":
                return await self._call(request, key, params)
            case _:
                result = {}
        return web.json_response({"jsonrpc": "2.0", "id": key, "result": result}, headers=headers)

    async def _listen(self, request: web.Request, key: Any, params: dict[str, Any]) -> web.StreamResponse:
        self.subscribed += params["notifications"].get("resourceSubscriptions", [])
        stream = await _stream(request)
        self._streams.append(stream)
        await _event(stream, {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}})
        await asyncio.Event().wait()
        return stream

    async def _call(self, request: web.Request, key: Any, params: dict[str, Any]) -> web.StreamResponse:
        given = params.get("arguments") or {}
        if "inputResponses" not in params:
            self.ran[str(given.get("id"))] += 1
        if params["name"] == "hang":
            await asyncio.Event().wait()
        if params["name"] == "wait":
            self.waiting += 1
            self.arrived.set()
            await self.release.wait()
        if params["name"] == "refuse":
            return _refusal(given["status"], key, given["code"], given["words"])
        if params["name"] in ("hold", "notify"):
            return await self._speak_first(request, key, params)
        answer: Any = given.get("text", "done")
        if params["name"] == "ask":
            if self.era == "legacy":
                return await self._ask(request, key)
            if "inputResponses" not in params:
                result: dict[str, Any] = {"resultType": "input_required", "inputRequests": {"sure": self.question}}
                return web.json_response({"jsonrpc": "2.0", "id": key, "result": result})
            answer = params["inputResponses"]["sure"]["action"]
        result = {"content": [{"type": "text", "text": str(answer)}]}
        return web.json_response({"jsonrpc": "2.0", "id": key, "result": result})

    async def _speak_first(self, request: web.Request, key: Any, params: dict[str, Any]) -> web.StreamResponse:
        """`notify` tells of a resource named after the call; `hold` reports progress and waits until it is let go."""
        call_id, stream = str(params["arguments"]["id"]), await _stream(request)
        if params["name"] == "notify":
            told: dict[str, Any] = {"uri": f"note://{call_id}"}
            await _event(stream, {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": told})
        else:
            token = (params.get("_meta") or {}).get("progressToken")
            if token is not None:
                told = {"progressToken": token, "progress": 1}
                await _event(stream, {"jsonrpc": "2.0", "method": "notifications/progress", "params": told})
            await self._held.setdefault(call_id, asyncio.Event()).wait()
        result = {"content": [{"type": "text", "text": call_id}]}
        await _event(stream, {"jsonrpc": "2.0", "id": key, "result": result})
        return stream

    async def _ask(self, request: web.Request, key: Any) -> web.StreamResponse:
        stream, number = await _stream(request), f"q{next(self._numbers)}"
        self._answers[number] = asyncio.get_running_loop().create_future()
        await _event(stream, {"jsonrpc": "2.0", "id": number, **self.question})
        answer = await self._answers[number]
        content = [{"type": "text", "text": str((answer.get("result") or {}).get("action"))}]
        await _event(stream, {"jsonrpc": "2.0", "id": key, "result": {"content": content}})
        return stream


def _refusal(status: int, key: Any, code: int, words: str) -> web.Response:
    if code == 0:
        return web.Response(status=status, text=words)
    error = {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": words}}
    return web.json_response(error, status=status)


async def _stream(request: web.Request) -> web.StreamResponse:
    stream = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await stream.prepare(request)
    return stream


async def _event(stream: web.StreamResponse, message: dict[str, Any]) -> None:
    await stream.write(b"data: " + json.dumps(message).encode() + b"\n\n")


async def _stop_accepting(runner: web.AppRunner) -> None:
    """First of all, and then let what was just being accepted come in: asyncio drops it unclosed otherwise."""
    loop = asyncio.get_running_loop()
    for site in runner.sites:
        for listener in cast(Any, site)._server.sockets:
            loop.remove_reader(listener.fileno())
    await settle()
