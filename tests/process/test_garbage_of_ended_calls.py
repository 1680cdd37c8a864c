"""However a call ends, its arguments are freed at once.

Arguments of megabytes make few objects, so the collector would come late.
"""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from support.backends.counting_http import CountingBackend
from support.callers.emceepee_process import EmceepeeProcess, configured, emceepee
from support.callers.http_process import HttpCaller, ModernCaller, http_process
from support.figures import record_figure
from support.matrix import matrix
from support.programs import collecting_emceepee
from support.server_programs import either_era_server
from support.server_programs.stdio_entries import program
from support.system.processes import memory_of
from support.waiting import eventually

LARGE = "x" * 150_000
ALLOWED = 100_000  # less than what one call carries
HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
CALLS = 3
ROUNDS, CALLS_OF_A_ROUND = 5, 60
SOON = {"timeout_ms": 1}
Caller = HttpCaller | EmceepeeProcess
LIMITS = {"question_seconds": 1, "modern_question_seconds": 1}


class Backends:
    """A server per transport and era, as callers add them."""

    def __init__(self, handshake: CountingBackend, modern: CountingBackend) -> None:
        stdio = partial(program, Path(either_era_server.__file__))
        self.web = {HANDSHAKE: handshake, MODERN: modern}
        self.entries: dict[str, dict[str, Any]] = {
            "web": {"url": handshake.url},
            "modern-web": {"url": modern.url},
            "stdio": stdio(HANDSHAKE),
            "modern-stdio": stdio(MODERN),
            "deaf": stdio(HANDSHAKE, "deaf"),
        }

    async def lose(self, server: str, caller: Caller) -> None:
        if server.endswith("web"):
            await self.web[MODERN if server == "modern-web" else HANDSHAKE].restart()
        else:
            await caller.call("execute_tool", server=server, tool="exit")


@asynccontextmanager
async def backends() -> AsyncIterator[Backends]:
    handshake, modern = CountingBackend("legacy"), CountingBackend("2026-07-28")
    for backend in (handshake, modern):
        await backend.start()
    try:
        yield Backends(handshake, modern)
    finally:
        for backend in (handshake, modern):
            await backend.stop()


async def hang_up(calls: "list[asyncio.Task[Any]]") -> None:
    for call in calls:
        call.cancel()
    await asyncio.wait(calls)


class Conversation:
    """One caller, whose every call has large arguments."""

    def __init__(self, caller: Caller, backends: Backends, *, large: str = LARGE) -> None:
        self.caller, self.backends, self.large = caller, backends, large
        self.keys: list[str] = []  # of the last requests
        self._keys = map("call {}".format, itertools.count(1))

    def start(self, server: str, tool: str, **more: Any) -> "list[asyncio.Task[Any]]":
        args = {"text": self.large, "id": "1", "status": 200, "code": -32000, "words": "no"}
        params = {"name": "execute_tool", "arguments": {"server": server, "tool": tool, "args": args, **more}}
        self.keys = [next(self._keys) for _ in range(CALLS)]

        def request(key: str) -> "asyncio.Task[Any]":
            asked = params | {"_meta": {"progressToken": key}}
            return asyncio.create_task(self.caller.request("tools/call", asked, key=key))

        return [request(key) for key in self.keys]

    async def leave(self, calls: "list[asyncio.Task[Any]]", keys: list[str]) -> None:
        """Cancel the calls as a client does."""
        for key in keys:
            cancelled = {"requestId": key}
            if isinstance(self.caller, HttpCaller):
                await self.caller.notify("notifications/cancelled", cancelled)
            else:
                told = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancelled}
                self.caller.send_line(json.dumps(told).encode())
        await hang_up(calls)

    async def all(self, server: str, tool: str, **more: Any) -> list[Any]:
        return await asyncio.gather(*self.start(server, tool, **more))

    async def add(self, server: str) -> None:
        await self.caller.value("add_server", name=server, **self.backends.entries[server])

    async def remove(self, server: str) -> None:
        await self.caller.value("remove_server", name=server)

    async def tasks(self) -> list[Any]:
        return list((await self.caller.value("list_tasks"))["tasks"])

    async def cancel_tasks(self) -> None:
        for task in await self.tasks():
            await self.caller.value("cancel_task", task_id=task["taskId"])

    async def until_none_works(self) -> None:
        async def none_works() -> bool:
            return not await self.tasks()

        await eventually(none_works, what="no task works")


Ending = Callable[[Conversation, str], Awaitable[None]]


async def a_result(of: Conversation, server: str) -> None:
    assert not [each for each in await of.all(server, "echo") if each["result"].get("isError")]


async def a_result_of_a_task(of: Conversation, server: str) -> None:
    await of.all(server, "echo", **SOON)
    await of.until_none_works()


async def an_error(of: Conversation, server: str) -> None:
    assert await of.all(server, "refuse")


async def a_task_that_expires(of: Conversation, server: str) -> None:
    await of.all(server, "hang", task_ttl_ms=20, **SOON)
    await of.until_none_works()


async def a_task_that_is_cancelled(of: Conversation, server: str) -> None:
    await of.all(server, "hang", **SOON)
    await of.cancel_tasks()


async def a_caller_that_leaves(of: Conversation, server: str) -> None:
    if isinstance(of.caller, ModernCaller):
        return  # says so by closing its response
    calls, keys = of.start(server, "hang"), of.keys
    await of.all(server, "echo")  # those before it have arrived
    await of.leave(calls, keys)


async def a_line_that_breaks(of: Conversation, server: str) -> None:
    """The calls go on as tasks."""
    if isinstance(of.caller, HttpCaller):
        calls = of.start(server, "hang", timeout_ms=300)
        await of.all(server, "echo")
        await hang_up(calls)

        async def are_tasks() -> bool:
            return len(await of.tasks()) == CALLS

        await eventually(are_tasks, what="the calls are tasks")
        await of.cancel_tasks()


async def a_question_that_expires(of: Conversation, server: str) -> None:
    await of.all(server, "ask")
    await of.until_none_works()


async def a_question_that_is_answered(of: Conversation, server: str) -> None:
    await of.all(server, "ask")
    for question in (await of.caller.value("get_elicitations"))["requests"]:
        answer = {"action": "accept", "content": {"sure": True}}
        await of.caller.value("respond_to_elicitation", request_id=question["requestId"], **answer)
    await of.until_none_works()


async def a_question_whose_task_is_cancelled(of: Conversation, server: str) -> None:
    await of.all(server, "ask")
    await of.cancel_tasks()


async def a_server_that_is_lost(of: Conversation, server: str) -> None:
    calls = of.start(server, "hang", timeout_ms=500)
    await of.all(server, "hang", **SOON)
    await of.backends.lose(server, of.caller)
    await asyncio.wait(calls)
    await of.cancel_tasks()  # of a call that came too late to be lost


async def a_server_that_is_reconnected(of: Conversation, server: str) -> None:
    calls = of.start(server, "hang", timeout_ms=500)
    await of.all(server, "hang", **SOON)
    await of.caller.value("reconnect_server", server=server)
    await asyncio.wait(calls)
    await of.cancel_tasks()  # of a call that came too late to be lost


async def a_server_that_is_removed(of: Conversation, server: str) -> None:
    calls = of.start(server, "hang", timeout_ms=500)
    await of.all(server, "hang", **SOON)
    await of.remove(server)
    await asyncio.wait(calls)
    await of.add(server)


ANSWERING = ("web", "modern-web", "stdio", "modern-stdio")
ENDINGS_OF_SILENCE: tuple[Ending, ...] = (
    a_task_that_expires,
    a_task_that_is_cancelled,
    a_server_that_is_removed,
)
ENDINGS: tuple[Ending, ...] = (
    a_result,
    a_result_of_a_task,
    an_error,
    a_task_that_expires,
    a_task_that_is_cancelled,
    a_caller_that_leaves,
    a_line_that_breaks,
    a_question_that_expires,
    a_question_that_is_answered,
    a_question_whose_task_is_cancelled,
    a_server_that_is_lost,
    a_server_that_is_reconnected,
    a_server_that_is_removed,
)


@asynccontextmanager
async def conversation_over_http(era: str) -> AsyncIterator[tuple[Conversation, Caller]]:
    async with (
        backends() as servers,
        http_process(
            "--log-level", "warn", env=configured({}, **LIMITS), module=collecting_emceepee.__name__
        ) as endpoint,
    ):
        caller = endpoint.modern(emceepee_session="mine") if era == MODERN else await endpoint.caller()
        yield Conversation(caller, servers), await endpoint.caller()


@asynccontextmanager
async def conversation_over_stdio(era: str) -> AsyncIterator[tuple[Conversation, Caller]]:
    async with (
        backends() as servers,
        emceepee(env=configured({}, **LIMITS), entry=(collecting_emceepee.__file__, "--log-level", "error")) as caller,
    ):
        await caller.initialize(era)
        yield Conversation(caller, servers), caller


async def garbage_bytes(asker: Caller) -> int:
    return int((await asker.value("list_servers"))["garbageBytes"])


@pytest.mark.parametrize(
    ("talk", "era"),
    matrix(
        itertools.product([conversation_over_http, conversation_over_stdio], [HANDSHAKE, MODERN]),
        representatives=[(conversation_over_http, MODERN), (conversation_over_stdio, HANDSHAKE)],
    ),
)
async def test_an_ended_call_leaves_no_large_objects_for_the_garbage_collector(talk: Any, era: str) -> None:
    left: dict[str, int] = {}
    async with talk(era) as (of, asker):
        await garbage_bytes(asker)
        for server, endings in (*dict.fromkeys(ANSWERING, ENDINGS).items(), ("deaf", ENDINGS_OF_SILENCE)):
            await of.add(server)
            for ending in endings:
                await ending(of, server)
                left[f"{ending.__name__} of {server}"] = await garbage_bytes(asker)
            await of.remove(server)
    kept = {how: size for how, size in left.items() if size > ALLOWED}
    record_figure(f"{era}: {len(left)} ways to end, {sum(left.values())} bytes left for the collector, after {kept}")
    assert kept == {}


async def test_an_ended_session_leaves_no_large_objects_for_the_garbage_collector() -> None:
    """Reference cycles keep the session until a collection, but not its tasks, results, events, and logs."""
    async with (
        backends() as servers,
        http_process(env=configured({}, **LIMITS), module=collecting_emceepee.__name__) as endpoint,
    ):
        asker = await endpoint.caller()
        await garbage_bytes(asker)
        of = Conversation(await endpoint.caller(), servers)
        await of.add("deaf")
        await of.all("deaf", "hang", **SOON)
        for server in ANSWERING:
            await of.add(server)
            await of.all(server, "tell")
            await of.all(server, "echo", max_bytes=10)
            await of.all(server, "ask")
            await of.all(server, "echo", **SOON)
            await of.all(server, "hang", **SOON)
        await of.caller.end()
        sessions, left = 0, 0

        async def is_freed() -> bool:
            nonlocal sessions, left
            found = await asker.value("list_servers")
            sessions += found["garbage"].get("Session", 0)
            left += found["garbageBytes"]
            return bool(sessions)

        await eventually(is_freed, what="nobody refers to the session")  # until the end of its last reply is confirmed
    record_figure(f"of a session that has ended: {left} bytes left for the collector")
    assert left <= ALLOWED


@pytest.mark.filterwarnings("ignore:Sending a large body")  # of the caller
async def test_rounds_of_expired_calls_leave_memory_constant() -> None:
    """The servers of these sessions do not read, so all calls wait in emceepee until they expire."""
    async with backends() as servers, http_process("--state", "memory") as endpoint:
        before = memory_of(endpoint.process.pid)
        for _ in range(ROUNDS):
            of = Conversation(await endpoint.caller(), servers, large="x" * 3_000_000)
            await of.add("deaf")
            for _ in range(CALLS_OF_A_ROUND // CALLS):
                await of.all("deaf", "hang", task_ttl_ms=300, **SOON)
            await of.until_none_works()
            await of.remove("deaf")
            await of.caller.end()
        sent, grown = 3 * ROUNDS * CALLS_OF_A_ROUND, (memory_of(endpoint.process.pid) - before) >> 20
    record_figure(f"{ROUNDS} rounds of {CALLS_OF_A_ROUND} calls that expire, {sent} MB in all: memory +{grown} MiB")
    assert grown < 300
