"""The cost of durable state: the same calls on emceepee with state in memory, SQLite, and Redis.

All run at the same time and take turns, so that a slow moment of the machine hits all.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter

import uvloop

from bench.backend.http import HttpBackend
from bench.contestants import BACKEND, EMCEEPEE
from bench.load.http_client import HttpSession
from bench.load.sample import Sample, WrongAnswer
from bench.measure.emceepee_process import CONNECT_SECONDS, emceepee_beside, servers, until_connected
from bench.redis import is_installed, redis
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import SMALL, Era
from emceepee.clock import SystemClock
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Commit, Lease, RecordKey, SessionHead

PART = "state"
PLAIN, DELIVERING, PROMOTED = "a plain call", "a call that delivers an event", "a call that becomes a task"
IN_A_ROW = "calls that become tasks, one right after the other"
MEMORY, SQLITE, REDIS = "memory", "SQLite", "Redis"
RATE, P99 = "commits a second", "a commit, p99"
TURNS, QUICK_TURNS, TURN_CALLS = 40, 15, 25
THINKING_SECONDS = 0.02  # callers think between two calls, and that is when things happen
COMMITS, COMMITTERS = 4000, 8
RECORD = b'{"version":1,"data":"' + b"x" * 480 + b'"}'
NOTICE = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "bench://something"}}
# Short retention: otherwise the stores would hold different numbers of records to search.
LIMITS = {"task_retention_seconds": 0.2, "event_seconds": 0.2}


def ratio(kind: str, engine: str = SQLITE) -> str:
    return f"{kind}: p50 with {engine}, share of that in memory"


def measure(settings: Settings, results: Results) -> None:
    if not settings.has(EMCEEPEE):
        return
    progress("state: calls")
    for kind, times in uvloop.run(_calls(QUICK_TURNS if settings.is_quick else TURNS)).items():
        for engine, sample in times.items():
            results.add(PART, f"{kind}, {engine}: p50", sample.percentile_ms(0.5), "ms")
        for engine in [engine for engine in times if engine != MEMORY]:
            results.add(PART, ratio(kind, engine), _ratio(times, engine), "")
    progress("state: commits")
    commits = uvloop.run(_commits())
    results.add(PART, RATE, commits.rate, "/s")
    results.add(PART, P99, commits.percentile_ms(0.99), "ms")


def _ratio(times: dict[str, Sample], engine: str) -> float:
    return times[engine].percentile_ms(0.5) / times[MEMORY].percentile_ms(0.5)


@dataclass(slots=True)
class _Caller:
    """A session on one of them, and the backend that only it has."""

    session: HttpSession
    backend: HttpBackend
    times: dict[str, Sample] = field(default_factory=lambda: {kind: Sample() for kind in KINDS})

    async def plain(self) -> None:
        await self._call()

    async def promoted(self) -> None:
        await self._call(timeout_ms=0)

    async def _call(self, **options: int) -> None:
        arguments = {"server": BACKEND, "tool": SMALL.tool, "args": {}, **options}
        result = await self.session.ask("tools/call", {"name": "execute_tool", "arguments": arguments})
        if result.get("isError"):
            raise WrongAnswer(f"{result}")

    async def turn(self, kind: str) -> None:
        for _ in range(TURN_CALLS):
            if kind == DELIVERING:
                self.backend.push(NOTICE)
            if kind in (DELIVERING, PROMOTED):
                await asyncio.sleep(THINKING_SECONDS)
            began = perf_counter()
            await KINDS[kind](self)
            self.times[kind].latencies.append(perf_counter() - began)


KINDS: dict[str, Callable[[_Caller], Awaitable[None]]] = {
    PLAIN: _Caller.plain,
    DELIVERING: _Caller.plain,
    PROMOTED: _Caller.promoted,
    IN_A_ROW: _Caller.promoted,
}


@asynccontextmanager
async def _caller(state: str) -> AsyncIterator[_Caller]:
    backend = HttpBackend(Era.HANDSHAKE)
    await backend.start()
    try:
        config = servers(1, backend.url, Era.HANDSHAKE)
        async with emceepee_beside(config, "--state", state, **LIMITS) as proxy:
            session = HttpSession(proxy.port, Era.HANDSHAKE)
            await session.open()
            await until_connected(session, 1)
            async with asyncio.timeout(CONNECT_SECONDS):
                await backend.has_listener.wait()
            await session.value("list_servers")  # takes the news of the connection with it
            yield _Caller(session, backend)
            session.line.close()
    finally:
        backend.stop()


async def _calls(turns: int) -> dict[str, dict[str, Sample]]:
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(TemporaryDirectory(prefix="emceepee-bench-"))
        states = {MEMORY: "memory", SQLITE: f"sqlite:{directory}/state.db"}
        if is_installed():
            states[REDIS] = stack.enter_context(redis())
        else:
            progress("state: redis-server is not installed, so it is left out; `make programs` installs it")
        callers = {engine: await stack.enter_async_context(_caller(state)) for engine, state in states.items()}
        for kind in KINDS:
            for caller in callers.values():  # to warm up
                await caller.turn(kind)
                caller.times[kind].latencies.clear()
            for _ in range(turns):
                for caller in callers.values():
                    await caller.turn(kind)
        return {kind: {engine: caller.times[kind] for engine, caller in callers.items()} for kind in KINDS}


async def _commits() -> Sample:
    """Sessions that each change three records again and again, as soon as the last change is in the store."""
    with TemporaryDirectory(prefix="emceepee-bench-") as directory:
        store = await SqliteStore.open(Path(directory) / "state.db", SystemClock())
        latencies: list[float] = []

        async def change(number: int) -> None:
            keys = frozenset({SessionKey("bench", KeyKind.NAME, str(number))})
            expires_at = datetime.now(UTC) + timedelta(days=1)
            head = SessionHead(session_id=str(number), principal="bench", keys=keys, expires_at=expires_at)
            lease: Lease | None = Lease(0, 0)
            for count in range(COMMITS // COMMITTERS):
                assert lease is not None
                puts = {RecordKey("event", f"{count * 3 + each:012}"): RECORD for each in range(3)}
                began = perf_counter()
                (lease,) = await store.commit([Commit(head=head, lease=lease, puts=puts)])
                latencies.append(perf_counter() - began)

        began = perf_counter()
        await asyncio.gather(*(change(number) for number in range(COMMITTERS)))
        took = perf_counter() - began
        await store.close()
    return Sample(seconds=took, latencies=latencies)
