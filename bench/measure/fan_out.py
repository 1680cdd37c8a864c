"""A hundred callers come at once, each with ten servers of its own; then all of them do nothing."""

import asyncio
from time import perf_counter

import uvloop

from bench.backend.http import HttpBackend
from bench.contestants import ASK_AGAIN_SECONDS, EMCEEPEE
from bench.load.http_client import HttpSession
from bench.load.sample import WrongAnswer
from bench.measure.emceepee_process import CONNECT_SECONDS, Emceepee, emceepee_beside, servers, until_connected
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import Era

PART = "fan-out"
SESSIONS, BACKENDS = 100, 10
IDLE_SECONDS, QUICK_IDLE_SECONDS = 10.0, 3.0
QUIET_SECONDS = 2.0  # for what follows the opening


def opened(era: Era) -> str:
    return f"{SESSIONS} sessions x {BACKENDS} HTTP backends open, {era}"


def idle_cpu(era: Era) -> str:
    return f"CPU of the idle proxy with {SESSIONS} sessions x {BACKENDS} backends, {era}"


def measure(settings: Settings, results: Results) -> None:
    if not settings.has(EMCEEPEE):
        return
    for era in settings.eras:
        took: list[float] = []
        for number in range(1 if settings.is_quick else settings.rounds):
            progress(f"{opened(era)}, round {number + 1}")
            idle = (QUICK_IDLE_SECONDS if settings.is_quick else IDLE_SECONDS) if number == 0 else 0.0
            took.append(uvloop.run(_once(era, idle, results)))
        results.add(PART, opened(era), min(took), "s")


async def _once(era: Era, idle: float, results: Results) -> float:
    backend = HttpBackend(era)
    await backend.start()
    try:
        async with emceepee_beside(servers(BACKENDS, backend.url, era)) as proxy:
            began = perf_counter()
            await asyncio.gather(*(_open(HttpSession(proxy.port, Era.HANDSHAKE), backend) for _ in range(SESSIONS)))
            took = perf_counter() - began
            if idle:
                share = await _idle_share(proxy, idle)
                results.add(PART, idle_cpu(era), share * 100, "%")
    finally:
        backend.stop()
    return took


async def _open(session: HttpSession, backend: HttpBackend) -> None:
    """Asked only when the backend has seen all of them: asking often would be part of the load."""
    await session.open()
    await session.value("list_servers")  # the first call connects them
    give_up = perf_counter() + CONNECT_SECONDS
    while backend.ready < SESSIONS * BACKENDS:
        if perf_counter() > give_up:
            raise WrongAnswer(f"only {backend.ready} connections were opened")
        await asyncio.sleep(ASK_AGAIN_SECONDS)
    await until_connected(session, BACKENDS)


async def _idle_share(proxy: Emceepee, seconds: float) -> float:
    await asyncio.sleep(QUIET_SECONDS)
    spent, began = proxy.child.cpu_seconds(), perf_counter()
    await asyncio.sleep(seconds)
    return (proxy.child.cpu_seconds() - spent) / (perf_counter() - began)
