"""The number of files that implement one tool call from the caller's socket to the server's pipe and back."""

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import FrameType

import aiohttp
import pytest

import emceepee
from emceepee.app.http_app import http_parts
from emceepee.app.session_parts import session_parts
from emceepee.clock import SystemClock
from emceepee.config.settings import Config, HttpConfig
from emceepee.server.http.http_endpoint import HttpEndpoint
from emceepee.server.http.uvicorn_server import serve_http
from emceepee.sessions.directory.directory import SessionDirectory
from support.callers.http_process import HttpProcess
from support.figures import record_figure
from support.server_programs.stdio_entries import stdio_server

ROOT = str(Path(emceepee.__file__).parent)
HAND_OVERS = ("create_task", "send", "write", "set_result")  # to a task, a socket, a pipe, or a waiter
# What every room stands on, and the server's own clockwork.
GROUND = (
    "surface.py",
    "telemetry/",
    "state/",
    "clock.py",
    "wire/codec.py",
    "wire/line_splitter.py",
    "wire/json_rpc.py",
    "wire/protocol.py",
    "lifecycle.py",
    "errors.py",
    "futures.py",
)
CLOCKWORK = ("server/http/uvicorn_server.py", "server/http/connection_table.py", "server/http/joined_writes.py")
MOST_HANDED_THROUGH = 19
MOST_ROOM_FILES = 39  # a request is read and judged apart from sessions, for replays have none
ERAS = ("2025-11-25", "2026-07-28")


class Trace:
    """Files of emceepee whose functions ran; and of these, through which the request or its answer was handed on."""

    def __init__(self) -> None:
        self.ran: dict[str, None] = {}
        self.handed_through: dict[str, None] = {}

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            name = frame.f_code.co_name
            self.ran |= dict.fromkeys(_files(frame)[:1])
        elif event == "c_call":
            name = getattr(arg, "__name__", "")
        else:
            return
        if name in HAND_OVERS:
            self.handed_through |= dict.fromkeys(reversed(_files(frame)))

    @property
    def rooms(self) -> list[str]:
        return [file for file in self.ran if not file.startswith(GROUND + CLOCKWORK)]


def _files(frame: FrameType | None) -> list[str]:
    """Of the frames on the stack that are emceepee's, innermost first."""
    found = []
    while frame is not None:
        if frame.f_code.co_filename.startswith(ROOT):
            found.append(frame.f_code.co_filename[len(ROOT) + 1 :])
        frame = frame.f_back
    return found


@asynccontextmanager
async def http_endpoint_here() -> AsyncIterator[HttpProcess]:
    """emceepee over HTTP in this very process."""
    clock, config, stopped = SystemClock(), Config(http=HttpConfig(port=0)), asyncio.Event()
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def announce(address: str) -> None:
        ready.set_result(address)

    async with session_parts(config, clock) as parts, aiohttp.ClientSession() as http:
        directory = SessionDirectory(parts)
        endpoint = HttpEndpoint(http_parts(config, directory, clock))
        serving = asyncio.create_task(
            serve_http(
                endpoint,
                host="127.0.0.1",
                port=0,
                limits=config.limits,
                announce=announce,
                stopped=stopped,
            )
        )
        try:
            yield HttpProcess(None, f"{await ready}/mcp", http)
        finally:
            stopped.set()
            await serving
            await endpoint.close()
            await directory.close_all()


@pytest.mark.parametrize("era", ERAS)
async def test_the_code_path_of_a_plain_call_spans_few_files(era: str) -> None:
    async with http_endpoint_here() as endpoint:
        caller = endpoint.modern(emceepee_session="mine") if era == ERAS[1] else await endpoint.caller()
        await caller.value("add_server", name="small", **stdio_server())
        traces = []
        for _ in range(5):  # a timer may run at the same time, which is no part of the call
            trace = Trace()
            sys.setprofile(trace)
            try:
                result = await caller.call("execute_tool", server="small", tool="echo", args={"text": "hello"})
            finally:
                sys.setprofile(None)
            assert not result.get("isError")
            traces.append(trace)
    best = min(traces[1:], key=lambda trace: len(trace.ran))
    record_figure(
        f"files of one execute_tool over HTTP, {era}: {len(best.handed_through)} that hand it on, "
        f"{len(best.rooms)} that run, {len(best.ran)} with the ground they stand on"
    )
    record_figure(" ".join(best.handed_through))
    assert len(best.handed_through) <= MOST_HANDED_THROUGH
    record_figure(" ".join(best.rooms))
    assert len(best.rooms) <= MOST_ROOM_FILES
