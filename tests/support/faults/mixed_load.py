"""Callers of every kind at once on a real emceepee, a fault every few seconds, and what is left of it afterwards."""

import asyncio
import itertools
import json
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass

import aiohttp

from support.backends.counting_http import CountingBackend
from support.callers.http_process import HttpCaller, HttpProcess, Json, http_process
from support.system.processes import children_of
from support.waiting import eventually

FAULT_SECONDS = 3.0
SAMPLE_SECONDS = 5.0
WORKERS = 2  # of each kind
PAUSE_SECONDS = 3.0  # between two rounds of a worker: most start a program, and what the cores cannot start piles up
REST_SECONDS = 240.0  # for sessions that nobody ended to be forgotten
FEW_TASKS = 30  # of the loop, when nobody is there
FEW_SESSIONS = 2  # the session of this count, and the session of the count before
QUIET_ROUNDS = 35  # of two seconds in which no descriptor was closed
# Retention is short, so that it levels off within the warm-up.
LIMITS = {
    "session_idle_seconds": 5,
    "session_kept_seconds": 10,
    "task_retention_seconds": 5,
    "replay_seconds": 5,
    "events_per_session": 100,
    "event_seconds": 5,
    "requests_in_all": 200,
    "timer_retention_seconds": 5,
    "http_retry_seconds": 0.05,
    "longest_http_retry_seconds": 0.5,
}
CLEAR = {
    *("TOOL_ERR_SERVER_DISCONNECTED", "TOOL_ERR_EXECUTION_FAILED", "TOOL_ERR_TIMEOUT", "TOOL_ERR_SERVER_NOT_FOUND"),
    *("TOOL_ERR_SESSION_NOT_FOUND", "ERR_TASK_NOT_FOUND", "ERR_REQUEST_NOT_FOUND", "ERR_LIMIT_EXCEEDED"),
    "ERR_INVALID_ARGUMENTS",  # another caller has added a server of that name
}


@dataclass(frozen=True, slots=True)
class Footprint:
    """The tasks, sessions, and memory of a process."""

    resident_kb: int
    descriptors: int
    processes: int
    asyncio_tasks: int
    sessions: int
    memory_blocks: int  # live objects, without the reserves of the allocator


class MixedLoad:
    """Run it for a while with `run`; `rest` waits until everything it left has gone."""

    def __init__(self, endpoint: HttpProcess, backends: list[CountingBackend], seed: int) -> None:
        self.endpoint, self.backends = endpoint, backends
        self.outcomes: Counter[str] = Counter()
        self.samples: list[tuple[float, int]] = []  # seconds and resident kB
        self._random = random.Random(seed)
        self._numbers = itertools.count(1)
        self._is_over = False

    async def run(self, seconds: float) -> None:
        self._is_over = False
        loop = asyncio.get_running_loop()
        started = loop.time()
        kinds = (self._handshake, self._sessionless, self._joining, self._cutting, self._waiting, self._adding)
        workers = [asyncio.ensure_future(self._again_and_again(kind)) for kind in kinds for _ in range(WORKERS)]
        next_fault = next_sample = started
        while (now := loop.time()) < started + seconds:
            if now >= next_fault:
                await self._fault()
                next_fault = now + FAULT_SECONDS
            if now >= next_sample:
                self.samples.append((now, await self.endpoint.resident_kb()))
                next_sample = now + SAMPLE_SECONDS
            await asyncio.sleep(0.1)  # the load runs for real minutes; this only looks whether a fault is due
        self._is_over = True
        async with asyncio.timeout(120):
            await asyncio.gather(*workers)

    async def rest(self) -> Footprint:
        """Nobody calls any more; returns what the process holds when every session is forgotten and idle connections to
        backends are closed."""
        loop = asyncio.get_running_loop()
        until, quiet = loop.time() + REST_SECONDS, 0
        tasks, sessions, blocks = await self._count()
        fewest = self._descriptors()
        # Idle connections go one by one, within the minute after their last use.
        while (tasks > FEW_TASKS or sessions > FEW_SESSIONS or quiet < QUIET_ROUNDS) and loop.time() < until:
            await asyncio.sleep(2)  # not five: after that, an idle connection is closed under our hands
            tasks, sessions, blocks = await self._count()
            now = self._descriptors()
            quiet, fewest = (quiet + 1, fewest) if now >= fewest else (0, now)
        await eventually(lambda: not self._children(), what="servers end with their sessions", within=30)
        resident = await self.endpoint.resident_kb()
        return Footprint(resident, self._descriptors(), len(self._children()), tasks, sessions, blocks)

    def _descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.endpoint.process.pid}/fd"))

    async def _count(self) -> tuple[int, int, int]:
        """The tasks of its loop, its sessions, and its blocks of memory."""
        caller = await self.endpoint.caller(client="counter", emceepee_connect="on-use")
        counts = await caller.value("list_servers")
        await caller.end()
        return int(counts["asyncioTasks"]), int(counts["sessionCount"]), int(counts["memoryBlocks"])

    def slope(self, since: float) -> float:
        """Growth of memory in kB per minute, from that share of the samples on, by least squares."""
        samples = self.samples[int(len(self.samples) * since) :]
        mean_x = sum(x for x, _ in samples) / len(samples)
        mean_y = sum(y for _, y in samples) / len(samples)
        spread = sum((x - mean_x) ** 2 for x, _ in samples)
        return 60 * sum((x - mean_x) * (y - mean_y) for x, y in samples) / spread if spread else 0.0

    def _children(self) -> list[int]:
        """The processes of servers, wherever below emceepee they stand."""
        found, unseen = [], [self.endpoint.process.pid]
        while unseen:
            below = children_of(unseen.pop())
            found += [pid for pid in below if "emceepee.demo" in _command(pid)]
            unseen += below
        return found

    # Callers.

    async def _again_and_again(self, kind: Callable[[], Awaitable[None]]) -> None:
        while not self._is_over:
            try:
                await kind()
            except (aiohttp.ClientError, ConnectionError):
                self.outcomes["connection lost"] += 1
            await asyncio.sleep(PAUSE_SECONDS * self._random.random() * 2)  # callers think between two calls

    async def _call(self, caller: HttpCaller, tool: str, /, **arguments: object) -> Json:
        result = await caller.call(tool, **arguments)
        if result.get("isError"):
            error = (result.get("structuredContent") or {}).get("error", {})
            assert error.get("code") in CLEAR, result
            self.outcomes[str(error["code"])] += 1
        else:
            self.outcomes["ok"] += 1
        return result

    async def _converse(self, caller: HttpCaller) -> None:
        """A little of everything on one session."""
        for backend in ("legacy", "modern"):
            key = f"k{next(self._numbers)}"
            await self._call(caller, "execute_tool", server=backend, tool="echo", args={"id": key, "text": key})
        await self._call(caller, "set_timer", duration_ms=50, message="tea")
        slow = await self._call(
            caller, "execute_tool", server="demo", tool="dig", args={"seconds": 0.2, "steps": 4}, timeout_ms=0
        )
        asked = await self._call(caller, "execute_tool", server="demo", tool="book_table", args={"restaurant": "Soak"})
        for result in (slow, asked):
            structured = result.get("structuredContent") or {}
            pending = structured.get("pending_on_server", {}).get("elicitations_for_server", [])
            for question in pending:
                form = {"guests": 2, "time": "18:00"}
                await self._call(
                    caller, "respond_to_elicitation", request_id=question["requestId"], action="accept", content=form
                )
            if task := structured.get("proxy_task"):
                await self._call(caller, "get_task_result", task_id=task["task_id"], timeout_ms=2000)

    async def _handshake(self) -> None:
        caller = await self.endpoint.caller()
        await self._converse(caller)
        if self._random.random() < 0.7:  # the others leave without a word
            await caller.end()

    async def _sessionless(self) -> None:
        caller = self.endpoint.modern()
        handle = (await self._call(caller, "open_session"))["structuredContent"].get("session")
        if handle is None:
            return
        await self._call(
            caller, "execute_tool", session=handle, server="modern", tool="echo", args={"id": "x", "text": "x"}
        )
        if self._random.random() < 0.7:
            await self._call(caller, "close_session", session=handle)
        await self._converse(self.endpoint.modern(emceepee_session=f"name{self._random.randrange(3)}"))

    async def _joining(self) -> None:
        caller = await self.endpoint.caller(emceepee_session=f"shared{self._random.randrange(2)}")
        await self._call(caller, "execute_tool", server="legacy", tool="echo", args={"id": "y", "text": "y"})
        if self._random.random() < 0.5:
            await caller.end()

    async def _cutting(self) -> None:
        """Hang up during calls."""
        caller: HttpCaller = await self.endpoint.caller() if self._random.random() < 0.5 else self.endpoint.modern()
        call = asyncio.ensure_future(
            caller.call("execute_tool", server="demo", tool="dig", args={"seconds": 0.3, "steps": 3})
        )
        await asyncio.sleep(self._random.random() * 0.4)  # the moment of the cut is random
        call.cancel()
        with suppress(asyncio.CancelledError, aiohttp.ClientError, AssertionError):
            await call
        self.outcomes["cut"] += 1

    async def _waiting(self) -> None:
        caller = self.endpoint.modern(emceepee_session=f"name{self._random.randrange(3)}")
        await self._call(caller, "await_activity", timeout_ms=500)

    async def _adding(self) -> None:
        caller = self.endpoint.modern(emceepee_session="adder")
        name = f"extra{self._random.randrange(3)}"
        await self._call(caller, "add_server", name=name, url=self._random.choice(self.backends).url)
        await self._call(caller, "remove_server", name=name)

    # Faults.

    async def _fault(self) -> None:
        match self._random.randrange(4):
            case 0:
                await self._random.choice(self.backends).restart()
            case 1:
                self._random.choice(self.backends).forget_sessions()
            case 2:
                for pid in self._children()[:2]:
                    with suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            case 3:
                backend = self._random.choice(self.backends)
                await backend.stop()
                await asyncio.sleep(0.3)  # an outage long enough for a try to find nobody
                await backend.start()
        self.outcomes["fault"] += 1


def _command(pid: int) -> str:
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().replace(b"\0", b" ").decode()
    except OSError:
        return ""


@asynccontextmanager
async def mixed_load(seed: int) -> AsyncIterator[MixedLoad]:
    """An emceepee with two HTTP servers and one program, and nobody calling yet."""
    legacy, modern = CountingBackend("legacy"), CountingBackend("2026-07-28")
    async with AsyncExitStack() as stack:
        for backend in (legacy, modern):
            await backend.start()
            stack.push_async_callback(backend.stop)
        path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
        demo = {"command": sys.executable, "args": ["-m", "emceepee.demo"], "env": path}
        servers = {"legacy": {"url": legacy.url}, "modern": {"url": modern.url}, "demo": demo}
        config = {"mcpServers": servers, "limits": LIMITS, "logLevel": "error"}
        env = {"EMCEEPEE_CONFIG": json.dumps(config)}
        endpoint = await stack.enter_async_context(http_process(env=env, module="support.programs.counting_emceepee"))
        yield MixedLoad(endpoint, [legacy, modern], seed)
