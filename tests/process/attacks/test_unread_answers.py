"""Callers that request large answers and do not read them, or read slowly."""

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from support.backends.http_backend import HELLO
from support.callers.emceepee_process import configured
from support.callers.http_process import HttpCaller, HttpProcess, http_process
from support.callers.raw_connection import RawConnection
from support.figures import record_figure
from support.matrix import matrix
from support.system.processes import memory_of
from support.system.web_application import running_application
from support.waiting import eventually

MIB = 1 << 20
ERAS = ("2025-11-25", "2026-07-28")
TOOL_NAMES = ("quick", "slow")
QUICK_CALLS = [("2025-11-25", "quick"), ("2026-07-28", "slow")]
TOOLS = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOL_NAMES]
SLOW_SECONDS = 1.5  # beyond which an answer is a stream
LISTENING, NO_OWNER = "0A", "0"  # in /proc/net/tcp


@cache
def answer_of(size: int) -> bytes:
    return b'{"jsonrpc":"2.0","id":%%d,"result":{"content":[{"type":"text","text":"%s"}]}}' % (b"x" * size)


async def serve(request: web.Request) -> web.StreamResponse:
    if request.method != "POST":
        return web.Response(status=405)
    message: dict[str, Any] = await request.json()
    if "id" not in message:
        return web.Response(status=202)
    match message["method"]:
        case "initialize":
            result: dict[str, Any] = HELLO
        case "tools/list":
            result = {"tools": TOOLS}
        case "tools/call":
            if message["params"]["name"] == "slow":
                await asyncio.sleep(SLOW_SECONDS)  # this is the backend's work, which takes real time
            body = answer_of(message["params"]["arguments"]["size"]) % message["id"]
            return web.Response(body=body, content_type="application/json")
        case _:
            return web.Response(status=400)
    return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})


@asynccontextmanager
async def talkative_backend() -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_route("*", "/mcp", serve)
    async with running_application(application) as port:
        yield f"http://127.0.0.1:{port}/mcp"


@asynccontextmanager
async def serving(**limits: float) -> AsyncIterator[HttpProcess]:
    async with (
        talkative_backend() as url,
        http_process("--state", "memory", env=configured({"big": {"url": url}}, **limits)) as endpoint,
    ):
        yield endpoint


async def caller_of(endpoint: HttpProcess, era: str) -> HttpCaller:
    caller = endpoint.modern() if era == "2026-07-28" else await endpoint.caller(era)
    await caller.call("execute_tool", server="big", tool="quick", args={"size": 1})
    return caller


def connections_of(endpoint: HttpProcess) -> int:
    """How many connections of callers the process holds."""
    port = f":{urlsplit(endpoint.origin).port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return sum(row[1].endswith(port) and row[3] != LISTENING and row[9] != NO_OWNER for row in rows)


@contextmanager
def unread_calls(caller: HttpCaller, tool: str, *, size: int, count: int) -> Iterator[list[RawConnection]]:
    lines = [RawConnection(caller.endpoint.origin) for _ in range(count)]
    try:
        for line in lines:
            line.call(caller, "execute_tool", server="big", tool=tool, args={"size": size})
        yield lines
    finally:
        for line in lines:
            line.cut()


async def finished_tasks(caller: HttpCaller) -> list[dict[str, Any]]:
    return list((await caller.value("list_tasks", include_completed=True))["tasks"])


def has_kept(caller: HttpCaller, count: int) -> Callable[[], Any]:
    async def check() -> bool:
        return len(await finished_tasks(caller)) == count

    return check


@pytest.mark.parametrize(("era", "tool"), matrix(itertools.product(ERAS, TOOL_NAMES), representatives=QUICK_CALLS))
async def test_an_unread_answer_is_abandoned_and_its_result_becomes_a_finished_task(era: str, tool: str) -> None:
    size, count = 20_000_000, 6
    async with serving(unread_answer_seconds=1, task_bytes_per_session=1 << 30) as endpoint:
        caller = await caller_of(endpoint, era)
        with unread_calls(caller, tool, size=size, count=count):
            await eventually(has_kept(caller, count), what="all are finished tasks", within=30)
            assert connections_of(endpoint) <= 2, "the test's own connections"
        tasks = await finished_tasks(caller)
        assert [(task["status"], task["hasResult"]) for task in tasks] == [("completed", True)] * count
        result = await caller.call("get_task_result", task_id=tasks[0]["taskId"])
        assert len(result["content"][0]["text"]) == size


@pytest.mark.parametrize(("era", "tool"), matrix(itertools.product(ERAS, TOOL_NAMES), representatives=QUICK_CALLS))
async def test_all_unread_answers_share_one_budget(era: str, tool: str) -> None:
    size, count = 20_000_000, 30
    async with serving(unread_answer_seconds=300, unread_bytes_in_all=60 * MIB) as endpoint:
        caller = await caller_of(endpoint, era)
        before = memory_of(endpoint.process.pid)
        with unread_calls(caller, tool, size=size, count=count):
            await eventually(has_kept(caller, count - 3), what="all but three are given up", within=30)
            assert connections_of(endpoint) <= 3 + 2
            growth = memory_of(endpoint.process.pid) - before
        record_figure(f"{count} answers of 20 MB that nobody reads, {tool}, {era}: +{growth // MIB} MiB")
        assert any(task["hasResult"] for task in await finished_tasks(caller))


@pytest.mark.parametrize("era", ERAS)
async def test_a_slow_reader_gets_the_whole_answer_and_no_task(era: str) -> None:
    size = 20_000_000
    async with serving(unread_answer_seconds=1) as endpoint:
        caller = await caller_of(endpoint, era)
        with unread_calls(caller, "slow", size=size, count=1) as [line]:
            await line.until_data()
            reads = 0
            while line.read_some() and not line.received.endswith(b"\r\n0\r\n\r\n"):
                reads += 1
                await asyncio.sleep(0.1)  # this is a slow reader, while the limit runs on real time
        record_figure(f"20 MB read slowly in {reads} parts, {era}")
        assert line.received.endswith(b"\r\n0\r\n\r\n")
        assert line.received.count(b"x") >= size
        assert await finished_tasks(caller) == []
