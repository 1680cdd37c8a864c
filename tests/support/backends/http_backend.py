"""A small MCP server over Streamable HTTP in the test's own process, as good or as bad as the test wants it."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from support.system.web_application import running_application

BIG = 5 << 20
HTML = "<!doctype html><html><body><h1>Gateway trouble</h1></body></html>"
TOOLS = ("echo", "big", "wait", "refuse", "cut", "page")


class HttpBackend:
    """Speaks 2025-11-25 at `url`. `answers_as` json or sse; `sessions` are those it still knows."""

    def __init__(self, answers_as: str) -> None:
        self.answers_as = answers_as
        self.url = ""
        self.sessions: set[str] = set()
        self.peers: set[tuple[str, int]] = set()  # one a TCP connection that a request came over
        self.requests: list[str] = []  # the path of each
        self.arrived = asyncio.Event()  # a call of `wait` is here
        self.release = asyncio.Event()  # lets it go on
        self._numbers = itertools.count(1)

    async def serve(self, request: web.Request) -> web.StreamResponse:
        assert request.transport is not None
        self.peers.add(request.transport.get_extra_info("peername"))
        self.requests.append(request.path)
        match request.path.strip("/").split("/"):
            case ["mcp"]:
                return await self._mcp(request)
            case ["moved"]:
                return web.Response(status=307, headers={"location": "/mcp"})
            case ["elsewhere"]:
                return web.Response(status=307, headers={"location": request.query["to"]})
            case ["status", code]:
                return web.Response(status=int(code), text=HTML, content_type="text/html")
        return web.Response(status=404, text="nothing here")

    async def _mcp(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            return web.Response(status=405)
        session = request.headers.get("mcp-session-id")
        if session is not None and session not in self.sessions:
            return web.json_response({"jsonrpc": "2.0", "id": None, "error": NO_SESSION}, status=404)
        if request.method == "DELETE":
            self.sessions.discard(session or "")
            return web.Response()
        message = json.loads(await request.read())
        if "id" not in message:
            return web.Response(status=202)
        if message["method"] == "initialize":
            session = f"session-{next(self._numbers)}"
            self.sessions.add(session)
            return await self._answered(request, message, result=HELLO, headers={"mcp-session-id": session})
        if message["method"] == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            return await self._answered(request, message, result={"tools": tools})
        if message["method"] == "tools/call":
            return await self._called(request, message)
        error = {"code": -32601, "message": "Method not found"}
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error}, status=400)

    async def _called(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        arguments = message["params"].get("arguments", {})
        match message["params"]["name"]:
            case "echo":
                return await self._answered(request, message, result=text(arguments["text"]))
            case "big":
                return await self._answered(request, message, result=text("ü" * (BIG // 2)))
            case "wait":
                self.arrived.set()
                await self.release.wait()
                return await self._answered(request, message, result=text("waited"))
            case "refuse":
                return web.Response(status=arguments["status"], text=HTML, content_type="text/html")
            case "page":
                return web.Response(text=HTML, content_type="text/html")
            case "cut":
                response = web.StreamResponse(headers={"content-type": self._content_type})
                await response.prepare(request)
                await response.write(b'data: {"jsonrpc":')
                assert request.transport is not None
                request.transport.abort()
                return response
        raise AssertionError(message)

    @property
    def _content_type(self) -> str:
        return "application/json" if self.answers_as == "json" else "text/event-stream"

    async def _answered(
        self, request: web.Request, message: dict[str, Any], *, result: Any, headers: dict[str, str] | None = None
    ) -> web.StreamResponse:
        body = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}, ensure_ascii=False).encode()
        if self.answers_as == "json":
            return web.Response(body=body, content_type="application/json", headers=headers)
        response = web.StreamResponse(headers={"content-type": self._content_type, **(headers or {})})
        await response.prepare(request)
        await response.write(b"event: message\ndata: " + body + b"\n\n")
        return response


NO_SESSION = {"code": -32001, "message": "Session not found"}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "http_backend", "version": "1"},
}


def text(words: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}]}


@asynccontextmanager
async def http_backend(answers_as: str = "json") -> AsyncIterator[HttpBackend]:
    backend = HttpBackend(answers_as)
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", backend.serve)
    async with running_application(app) as port:
        backend.url = f"http://127.0.0.1:{port}/mcp"
        try:
            yield backend
        finally:
            backend.release.set()
