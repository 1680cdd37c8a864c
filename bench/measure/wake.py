"""How long after a backend's notification `await_activity` has returned. Backend and caller share our clock."""

import asyncio
from time import perf_counter

import uvloop

from bench.backend.http import HttpBackend
from bench.contestants import EMCEEPEE
from bench.load.http_client import HttpSession
from bench.load.sample import Sample, WrongAnswer
from bench.measure.emceepee_process import CONNECT_SECONDS, emceepee_beside, servers, until_connected
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import Era

PART = "wake"
P50, P99 = "await_activity wakes, p50", "await_activity wakes, p99"
WAKES, QUICK_WAKES, FIRST_WAKES = 500, 200, 20
UNTIL_IT_WAITS = 0.01  # seconds from the request to a caller that surely waits, unless the machine is very busy
LEAST_SHARE = 0.8  # of the callers that must have waited
PATIENCE_MS = 20_000
NOTICE = {"jsonrpc": "2.0", "method": "notifications/resources/updated", "params": {"uri": "bench://something"}}


def measure(settings: Settings, results: Results) -> None:
    if not settings.has(EMCEEPEE):
        return
    rounds: list[Sample] = []
    for number in range(settings.rounds):
        progress(f"await_activity, round {number + 1}")
        rounds.append(uvloop.run(_once(QUICK_WAKES if settings.is_quick else WAKES)))
    results.add(PART, P50, min(item.percentile_ms(0.5) for item in rounds), "ms")
    results.add(PART, P99, min(item.percentile_ms(0.99) for item in rounds), "ms")


async def _once(wakes: int) -> Sample:
    backend = HttpBackend(Era.HANDSHAKE)
    await backend.start()
    try:
        async with emceepee_beside(servers(1, backend.url, Era.HANDSHAKE)) as proxy:
            session = HttpSession(proxy.port, Era.HANDSHAKE)
            await session.open()
            await until_connected(session, 1)
            async with asyncio.timeout(CONNECT_SECONDS):
                await backend.has_listener.wait()
            await session.value("list_servers")  # takes the news of the connection with it
            for _ in range(FIRST_WAKES):
                await _wake(session, backend)
            tries = [await _wake(session, backend) for _ in range(wakes)]
            session.line.close()
    finally:
        backend.stop()
    latencies = [took for took in tries if took is not None]
    if len(latencies) < wakes * LEAST_SHARE:
        raise WrongAnswer(f"of {wakes} callers, only {len(latencies)} waited when something happened")
    return Sample(seconds=sum(latencies), latencies=latencies)


async def _wake(session: HttpSession, backend: HttpBackend) -> float | None:
    """None if the notification was there before the caller, which says nothing of waking up."""
    waiting = asyncio.ensure_future(session.value("await_activity", timeout_ms=PATIENCE_MS))
    await asyncio.sleep(UNTIL_IT_WAITS)
    if waiting.done():
        raise WrongAnswer(f"it did not wait: {waiting.result()}")
    said = perf_counter()
    backend.push(NOTICE)
    reply = await waiting
    took = perf_counter() - said
    match [trigger["type"] for trigger in reply["triggers"]]:
        case ["event"]:
            return took
        case ["immediate"]:
            return None
        case other:
            raise WrongAnswer(f"it woke for something else: {other}")
