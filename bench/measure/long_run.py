"""Whether memory grows with the calls that were made."""

import uvloop

from bench.contestants import EMCEEPEE, backend
from bench.load.http import call_for
from bench.load.http_client import HttpSession
from bench.measure.emceepee_process import Emceepee, emceepee_with, open_sessions, servers
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import SMALL, Era, Wire, mark_of

PART = "long-run"
CALLS, GROWN = "calls", "memory grown after the first tenth"
CALLERS = 16
STRETCH_SECONDS = 1.0
SETTLING_SHARE = 0.1  # of the calls: caches and buffers fill up first


def measure(settings: Settings, results: Results) -> None:
    if settings.has(EMCEEPEE):
        with (
            backend(Wire.HTTP, Era.HANDSHAKE) as url,
            emceepee_with(servers(1, url, Era.HANDSHAKE)) as proxy,
        ):
            uvloop.run(_run(proxy, settings.long_calls, results))


async def _run(proxy: Emceepee, calls: int, results: Results) -> None:
    sessions = await open_sessions(proxy, CALLERS)
    progress(f"memory over {calls} calls")
    first = await _call(proxy, sessions, int(calls * SETTLING_SHARE))
    before = proxy.child.private_bytes()
    done = first + await _call(proxy, sessions, calls - first)
    grown = proxy.child.private_bytes() - before
    results.add(PART, CALLS, done, "calls")
    results.add(PART, GROWN, grown, "B")


async def _call(proxy: Emceepee, sessions: list[HttpSession], least: int) -> int:
    """At least so many calls. Nobody keeps their latencies: ours must not grow either."""
    requests = [session.call_bytes(*EMCEEPEE.call(SMALL)) for session in sessions]
    done = 0
    while done < least:
        sample = await call_for(STRETCH_SECONDS, requests, port=proxy.port, mark=mark_of(SMALL))
        done += sample.calls
        progress(f"memory over calls: {done} of {least}, {proxy.child.private_bytes() >> 10} KB")
    return done
