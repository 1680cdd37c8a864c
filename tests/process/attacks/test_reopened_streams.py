"""A server that ends every stream at once and requests no delay is not flooded with reconnects."""

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from support.callers.recorder import Recorder, recorded
from support.figures import record_figure
from support.system.web_application import running_application

SECONDS = 3
EXPECTED = 6  # pauses of 0.1, 0.2, 0.4, 0.8 and 1.6 seconds
LISTS = {"tools": {"listChanged": True}, "resources": {"subscribe": True}}


class Ending:
    """Serves both eras; every stream has its first event, and then ends."""

    def __init__(self, era: str) -> None:
        self.era, self.url = era, ""
        self.opened: Counter[str] = Counter()

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            kind = "answers" if "last-event-id" in request.headers else "pushes"
            self.opened[kind] += 1
            return await _stream(request, b"retry: 0\n" + (b"id: 1\n" if kind == "answers" else b"") + b"data:\n\n")
        message = json.loads(await request.read())
        if "id" not in message:
            return web.Response(status=202)
        match message["method"]:
            case "tools/call":
                return await _stream(request, b"retry: 0\nid: 1\ndata:\n\n")
            case "subscriptions/listen":
                self.opened["listens"] += 1
                told = {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}}
                return await _stream(request, b"data: " + json.dumps(told).encode() + b"\n\n")
        answer = {"jsonrpc": "2.0", "id": message["id"]} | self._result(message["method"])
        return web.json_response(answer)

    def _result(self, method: str) -> dict[str, Any]:
        info = {"name": "ending", "version": "1"}
        match method:
            case "server/discover" if self.era == "modern":
                return {"result": {"supportedVersions": ["2026-07-28"], "capabilities": LISTS, "serverInfo": info}}
            case "initialize" if self.era == "legacy":
                return {"result": {"protocolVersion": "2025-11-25", "capabilities": LISTS, "serverInfo": info}}
            case "tools/list":
                return {"result": {"tools": [{"name": "cut", "inputSchema": {"type": "object"}}]}}
        return {"error": {"code": -32601, "message": "Method not found"}}


async def _stream(request: web.Request, first: bytes) -> web.StreamResponse:
    response = web.StreamResponse(headers={"content-type": "text/event-stream"})
    await response.prepare(request)
    await response.write(first)
    return response


@asynccontextmanager
async def an_emceepee_before(era: str) -> AsyncIterator[tuple[Ending, Recorder]]:
    backend, app = Ending(era), web.Application()
    app.router.add_route("*", "/mcp", backend.serve)
    async with running_application(app) as port:
        backend.url = f"http://127.0.0.1:{port}/mcp"
        async with recorded({"name": "one", "url": backend.url}) as emceepee:
            await emceepee.value("list_tools")
            yield backend, emceepee


async def while_the_timer_runs(emceepee: Recorder) -> None:
    await emceepee.value("set_timer", duration_ms=SECONDS * 1000, message="enough")
    await emceepee.until("timer_expired")


@pytest.mark.parametrize(("kind", "era"), [("pushes", "legacy"), ("answers", "legacy"), ("listens", "modern")])
async def test_streams_that_end_at_once_are_reopened_with_growing_delays(kind: str, era: str) -> None:
    async with an_emceepee_before(era) as (backend, emceepee):
        if kind == "answers":
            await emceepee.execute("cut", timeout_ms=0)
        before = backend.opened[kind]
        async with asyncio.timeout(60):
            await while_the_timer_runs(emceepee)
        opened, told = backend.opened[kind] - before, emceepee.types.count("notification")
        record_figure(f"{opened} {kind} and {told} notifications in {SECONDS} s")
        assert 1 <= opened <= EXPECTED * 5
        assert told <= EXPECTED * 5 * len(LISTS)
