"""Backends that send endless requests do not affect other callers."""

import asyncio
import itertools
import json
import resource
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from support.callers.emceepee_process import configured
from support.callers.http_process import HttpCaller, http_process, until
from support.faults.strain import strain_on
from support.figures import record_figure
from support.server_programs import flooding
from support.server_programs.stdio_entries import stdio_server
from support.sessions.replies import text_of
from support.system.web_application import running_application

FLOODING = Path(flooding.__file__)


def flooding_server(size: int = 10) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-S", "-E", str(FLOODING)], "env": {"FLOOD_BYTES": str(size)}}


async def flood(caller: HttpCaller, **how: Any) -> dict[str, Any]:
    return await caller.call("execute_tool", server="flood", tool="flood", args=how, timeout_ms=6000)


async def test_a_process_that_sends_endless_requests_and_reads_no_answer_is_paused() -> None:
    async with http_process(env=configured({"flood": flooding_server(), "good": stdio_server()})) as endpoint:
        caller = await endpoint.caller()
        await caller.value("list_tools")
        async with strain_on(endpoint) as strain:
            answer = await flood(caller, what="ping", seconds=4)
        record_figure(f"{text_of(answer)} pings were taken")
        strain.check()
        echoed = await caller.call("execute_tool", server="good", tool="echo", args={"text": "hello"})
        assert "hello" in text_of(echoed)


async def test_of_many_concurrent_questions_the_first_few_wait_and_the_others_are_rejected() -> None:
    async with http_process(env=configured({"flood": flooding_server()})) as endpoint:
        caller = await endpoint.caller()
        await caller.value("list_tools")
        async with strain_on(endpoint) as strain:
            await flood(caller, what="question", count=20_000, reads=True)
            waiting = (await caller.value("get_elicitations"))["requests"]
            listed = await caller.call("list_servers")
        strain.check()
        assert len(waiting) == 20
        assert len(json.dumps(listed)) < 50_000

        async def are_refused() -> bool:
            told = await caller.call("execute_tool", server="flood", tool="echo", on_question="wait")
            return text_of(told) == "19980 refused"

        await until(are_refused, "the backend has its refusals")


class Pestering:
    """A backend on HTTP. Its tool `flood` sends pings on the answer's own stream; what we answer it never takes."""

    def __init__(self) -> None:
        self.url = ""
        self.sent = 0

    async def serve(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        if "method" not in message:
            await asyncio.Event().wait()
        if "id" not in message:
            return web.Response(status=202)
        match message["method"]:
            case "initialize":
                info = {"name": "pestering", "version": "1"}
                result: dict[str, Any] = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                }
            case "tools/list":
                result = {"tools": [{"name": "flood", "inputSchema": {"type": "object"}}]}
            case "tools/call":
                return await self._flood(request, message)
            case _:
                return web.Response(status=400)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})

    async def _flood(self, request: web.Request, message: dict[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            async with asyncio.timeout(message["params"]["arguments"]["seconds"]):
                for number in itertools.count():
                    ping = {"jsonrpc": "2.0", "id": number, "method": "ping"}
                    await response.write(b"data: " + json.dumps(ping).encode() + b"\n\n")
                    self.sent += 1
        except TimeoutError:
            result = {"content": [{"type": "text", "text": "done"}]}
            answer = json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}).encode()
            await response.write(b"data: " + answer + b"\n\n")
        return response


@asynccontextmanager
async def pestering_backend() -> AsyncIterator[Pestering]:
    backend, application = Pestering(), web.Application()
    application.router.add_route("*", "/mcp", backend.serve)
    async with running_application(application, cancels_handlers=True) as port:
        backend.url = f"http://127.0.0.1:{port}/mcp"
        yield backend


async def test_an_http_backend_that_sends_endless_requests_leaves_descriptors_for_others() -> None:
    async with (
        pestering_backend() as backend,
        http_process(env=configured({"flood": {"url": backend.url}, "good": stdio_server()})) as endpoint,
    ):
        caller = await endpoint.caller()
        await caller.value("list_tools")
        resource.prlimit(endpoint.process.pid, resource.RLIMIT_NOFILE, (300, 300))
        async with strain_on(endpoint) as strain:
            asking = asyncio.create_task(flood(caller, seconds=3))
            while not asking.done():
                echoed = await caller.call("execute_tool", server="good", tool="echo", args={"text": "hello"})
                assert "hello" in text_of(echoed)
            await asking
        record_figure(f"{backend.sent} pings were sent")
        strain.check()
        assert strain.descriptors < 200
