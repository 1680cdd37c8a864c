"""Sessions opened and closed in a second, by callers who do nothing else."""

import asyncio
from collections.abc import Awaitable, Callable
from time import perf_counter

import uvloop

from bench.contestants import DIRECT, EMCEEPEE, MCP_PROXY, RELAY, HttpDriver, backend, started
from bench.load.http_client import HttpLine, HttpSession
from bench.measure.emceepee_process import Emceepee, emceepee_with, until_it_listens
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import Era, Shape, Wire

PART = "sessions"
CALLERS = 16
Turn = Callable[[HttpLine], Awaitable[None]]


def measure(settings: Settings, results: Results) -> None:
    if settings.has(EMCEEPEE):
        progress("sessions opened and closed: emceepee without servers")
        with emceepee_with({}) as proxy:
            uvloop.run(_both_eras(proxy, settings, results))
    for contestant in settings.contestants:
        if contestant in (DIRECT, RELAY):
            continue  # they have none
        progress(f"sessions opened and closed: {contestant.name}")
        shape = Shape(Wire.HTTP, Wire.STDIO if contestant is MCP_PROXY else Wire.HTTP)
        with backend(shape.back, Era.HANDSHAKE) as back, started(contestant, shape, Era.HANDSHAKE, back) as driver:
            assert isinstance(driver, HttpDriver)
            driver.open()
            rate = uvloop.run(_best(settings, driver.port, _handshake(driver.port)))
        results.add(PART, "one server behind: opened and closed", rate, "/s", contestant.name)


async def _both_eras(proxy: Emceepee, settings: Settings, results: Results) -> None:
    await until_it_listens(proxy.child, proxy.port)
    rate = await _best(settings, proxy.port, _handshake(proxy.port))
    results.add(PART, "no server behind: opened and closed", rate, "/s")
    rate = await _best(settings, proxy.port, _by_tool(proxy.port))
    results.add(PART, "no server behind: open_session and close_session, 2026-07-28", rate, "/s")


def _handshake(port: int) -> Turn:
    async def turn(line: HttpLine) -> None:
        session = HttpSession(port, Era.HANDSHAKE, line=line)
        await session.open()
        await session.close(keep_line=True)

    return turn


def _by_tool(port: int) -> Turn:
    async def turn(line: HttpLine) -> None:
        caller = HttpSession(port, Era.MODERN, line=line)
        del caller.headers["emceepee-session"]
        opened = await caller.value("open_session")
        await caller.value("close_session", session=opened["session"])

    return turn


async def _best(settings: Settings, port: int, turn: Turn) -> float:
    return max([await _rate(settings.seconds, port, turn) for _ in range(settings.rounds)])


async def _rate(seconds: float, port: int, turn: Turn) -> float:
    done, began = 0, perf_counter()

    async def caller() -> None:
        nonlocal done
        line = HttpLine("127.0.0.1", port)
        while perf_counter() < began + seconds:
            await turn(line)
            done += 1
        line.close()

    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return done / (perf_counter() - began)
