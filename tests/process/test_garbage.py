"""A call's memory is free again at its end. Reference cycles would wait for the garbage collector, whose runs delay
other calls."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial

import pytest

from support.backends.web_backend import a_web_backend
from support.callers.emceepee_process import EmceepeeProcess, configured, emceepee
from support.callers.http_process import HttpCaller, http_process
from support.programs import collecting_emceepee
from support.server_programs.stdio_entries import stdio_server

ROUNDS, CALLS = 2, 20
MODERN = "2026-07-28"
ERAS = ("2025-11-25", MODERN)
Connect = Callable[[str], AbstractAsyncContextManager[HttpCaller | EmceepeeProcess]]


@asynccontextmanager
async def two_servers() -> AsyncIterator[dict[str, str]]:
    """The environment of an emceepee with a backend over HTTP and one over stdio, which shows few of its requests."""
    async with a_web_backend() as web:
        yield configured({"web": {"url": web.url}, "small": stdio_server()}, requests_per_session=CALLS)


async def left_by_calls(caller: HttpCaller | EmceepeeProcess) -> object:
    """Of the last round: connecting is seldom, and may leave something."""
    for _ in range(ROUNDS):
        for server in ("web", "small"):
            call = partial(caller.call, "execute_tool", server=server, tool="echo", args={"text": "hello"})
            results = await asyncio.gather(*(call() for _ in range(CALLS)))
            assert not [result for result in results if result.get("isError")]
        left = (await caller.value("list_servers"))["garbage"]
    return left


@asynccontextmanager
async def over_http(era: str) -> AsyncIterator[HttpCaller]:
    async with (
        two_servers() as env,
        http_process("--log-level", "warn", env=env, module=collecting_emceepee.__name__) as endpoint,
    ):
        yield endpoint.modern(emceepee_session="mine") if era == MODERN else await endpoint.caller()


@asynccontextmanager
async def over_stdio(era: str) -> AsyncIterator[EmceepeeProcess]:
    async with two_servers() as env, emceepee(env=env, entry=(collecting_emceepee.__file__,)) as caller:
        await caller.initialize(era)
        yield caller


FAILING = (
    ("execute_tool", {"server": "nobody", "tool": "x"}),
    ("execute_tool", {"server": "small", "tool": "no_such_tool"}),
    ("execute_tool", {"server": "web", "tool": "echo", "stranger": 1}),
    ("read_resource", {"server": "small", "uri": "x://nothing"}),
    ("read_resource", {"server": "web", "uri": "x://nothing"}),
    ("get_task_result", {"task_id": "unknown"}),
)


async def left_by_failures(caller: HttpCaller | EmceepeeProcess) -> object:
    await left_by_calls(caller)  # and all is connected
    for tool, arguments in FAILING:
        results = await asyncio.gather(*(caller.call(tool, **arguments) for _ in range(CALLS)))
        assert all(result.get("isError") for result in results)
    return (await caller.value("list_servers"))["garbage"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("connect", [over_http, over_stdio])
async def test_successful_calls_leave_no_reference_cycles(connect: Connect, era: str) -> None:
    async with connect(era) as caller:
        assert await left_by_calls(caller) == {}


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("connect", [over_http, over_stdio])
async def test_failed_calls_leave_no_reference_cycles(connect: Connect, era: str) -> None:
    """Arguments may have megabytes, and a caller with only invalid requests creates few other objects."""
    async with connect(era) as caller:
        assert await left_by_failures(caller) == {}
