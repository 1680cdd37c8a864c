"""Memory of an idle session and of an idle connection to a backend."""

import asyncio

import uvloop

from bench.contestants import EMCEEPEE, backend
from bench.measure.emceepee_process import (
    SETTLE_SECONDS,
    Emceepee,
    emceepee_with,
    open_sessions,
    servers,
    until_connected,
)
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import Era, Wire

PART = "memory"
SESSION = "an idle session"
FIRST_SESSIONS, SESSIONS = 100, 1000  # the first ones pay for what is made once
FIRST_GROUPS, GROUPS, BACKENDS = 10, 50, 10  # sessions with so many backends each


def connection(era: Era) -> str:
    return f"an idle HTTP backend connection, {era}"


def measure(settings: Settings, results: Results) -> None:
    if not settings.has(EMCEEPEE):
        return
    progress(f"memory: {SESSIONS} idle sessions")
    with emceepee_with({}) as proxy:
        session_bytes = uvloop.run(_sessions(proxy, results))
    for era in settings.eras:
        progress(f"memory: {GROUPS * BACKENDS} idle HTTP connections to backends, {era}")
        with backend(Wire.HTTP, era) as url, emceepee_with(servers(BACKENDS, url, era)) as proxy:
            grown = uvloop.run(_connections(proxy))
        each = (grown - GROUPS * session_bytes) / (GROUPS * BACKENDS)
        results.add(PART, connection(era), each, "B")


async def _sessions(proxy: Emceepee, results: Results) -> float:
    await open_sessions(proxy, 1)
    results.add(PART, "the process", await _settled_bytes(proxy), "B")
    await open_sessions(proxy, FIRST_SESSIONS)
    before = await _settled_bytes(proxy)
    await open_sessions(proxy, SESSIONS)
    each = (await _settled_bytes(proxy) - before) / SESSIONS
    results.add(PART, SESSION, each, "B")
    return each


async def _connections(proxy: Emceepee) -> int:
    await _connected(proxy, FIRST_GROUPS)
    before = await _settled_bytes(proxy)
    await _connected(proxy, GROUPS)
    return await _settled_bytes(proxy) - before


async def _connected(proxy: Emceepee, sessions: int) -> None:
    for session in await open_sessions(proxy, sessions):
        await until_connected(session, BACKENDS)


async def _settled_bytes(proxy: Emceepee) -> int:
    await asyncio.sleep(SETTLE_SECONDS)
    return proxy.child.private_bytes()
