"""How the cost of a call grows with the sessions that are alive and with the backends that are connected."""

from contextlib import ExitStack

import uvloop

from bench.contestants import EMCEEPEE, backend
from bench.load.http import call_for
from bench.load.http_client import HttpSession
from bench.load.sample import Sample
from bench.measure.emceepee_process import Emceepee, emceepee_with, open_sessions, servers, until_connected
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import SMALL, Era, Wire, mark_of

SESSIONS_PART, BACKENDS_PART = "growth-sessions", "growth-backends"
COUNTS = {SESSIONS_PART: (1, 100, 1000), BACKENDS_PART: (1, 10, 100)}
PROCESSES = 2  # for each count: how a process's memory happens to lie makes it faster or slower by some percent
BATCHES, BATCH_SECONDS = 10, 0.25  # for each process
CALLERS = 16


def alive(part: str, count: int) -> str:
    what = part.removeprefix("growth-")
    return f"{count:,} {what if count > 1 else what.removesuffix('s')}"


def cpu(part: str, count: int) -> str:
    return f"CPU a call, {alive(part, count)}"


def measure(settings: Settings, results: Results, part: str) -> None:
    if not settings.has(EMCEEPEE):
        return
    with ExitStack() as stack:
        url = stack.enter_context(backend(Wire.HTTP, Era.HANDSHAKE))
        crowds: list[tuple[int, Emceepee, HttpSession]] = []
        for count in COUNTS[part] * PROCESSES:
            progress(f"{part}: {count}")
            sessions, backends = (count, 1) if part == SESSIONS_PART else (1, count)
            proxy = stack.enter_context(emceepee_with(servers(backends, url, Era.HANDSHAKE)))
            crowds.append((count, proxy, uvloop.run(_opened(proxy, sessions, backends))))
        batches: dict[int, list[Sample]] = {count: [] for count in COUNTS[part]}
        for number in range(BATCHES):
            progress(f"{part}: batch {number + 1}")
            for count, proxy, session in crowds:
                batches[count].append(uvloop.run(_batch(proxy, session)))
    for count, samples in batches.items():
        results.add(part, cpu(part, count), min(item.cpu_us for item in samples), "µs")
        results.add(part, f"calls a second, {alive(part, count)}", max(item.rate for item in samples), "/s")


async def _opened(proxy: Emceepee, sessions: int, backends: int) -> HttpSession:
    """The one session that will call; the others only live."""
    opened = await open_sessions(proxy, sessions)
    for session in opened:
        await until_connected(session, backends)
    return opened[0]


async def _batch(proxy: Emceepee, session: HttpSession) -> Sample:
    request = session.call_bytes(*EMCEEPEE.call(SMALL))
    spent = proxy.child.cpu_seconds()
    sample = await call_for(BATCH_SECONDS, [request] * CALLERS, port=proxy.port, mark=mark_of(SMALL))
    sample.cpu_seconds = proxy.child.cpu_seconds() - spent
    return sample
