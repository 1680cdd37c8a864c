"""What more processes bring and cost: calls a second of two workers and of one, and what a hop adds to a call.

The workers, their callers and the backend share all cores, and those that are compared take turns.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from tempfile import TemporaryDirectory

import uvloop

from bench.contestants import EMCEEPEE, HttpDriver, backend, emceepee, server_entry
from bench.load.http import call_for
from bench.load.http_client import HttpSession
from bench.load.sample import Sample
from bench.processes import Child, free_port, on_all_cores, running
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import SMALL, Era, Wire, mark_of

PART = "replicas"
CALLERS = 16
ROUNDS, QUICK_ROUNDS = 12, 6
ROUND_SECONDS = 1.0
HOP_ROUNDS, HOP_SECONDS = 20, 0.3
WARM_SECONDS = 0.3
SHARE = f"calls a second of two workers, share of one's, {CALLERS} callers"
CPU_SHARE = f"CPU of a call with two workers, share of that with one, {CALLERS} callers"
HOP = "p50 that a hop to another replica adds, one caller"


def measure(settings: Settings, results: Results) -> None:
    if not settings.has(EMCEEPEE):
        return
    progress("replicas: workers")
    with on_all_cores():
        one, two = _workers(QUICK_ROUNDS if settings.is_quick else ROUNDS)
    for name, sample in (("one worker", one), ("two workers", two)):
        results.add(PART, f"{name}: calls a second, {CALLERS} callers", sample.rate, "/s")
        results.add(PART, f"{name}: CPU of a call", sample.cpu_us, "µs")
    results.add(PART, SHARE, two.rate / one.rate, "")
    results.add(PART, CPU_SHARE, two.cpu_us / one.cpu_us, "")
    progress("replicas: a hop")
    straight, passed_on = _hop()
    results.add(PART, "at the replica that has the session: p50", straight.percentile_ms(0.5), "ms")
    results.add(PART, "passed on by another: p50", passed_on.percentile_ms(0.5), "ms")
    results.add(PART, HOP, passed_on.percentile_ms(0.5) - straight.percentile_ms(0.5), "ms")


@dataclass(slots=True)
class _Best:
    """The best round counts: noise only ever slows."""

    rate: float = 0.0
    cpu_us: float = float("inf")

    def add(self, sample: Sample) -> None:
        self.rate, self.cpu_us = max(self.rate, sample.rate), min(self.cpu_us, sample.cpu_us)


@contextmanager
def _emceepee(back: str, *options: str) -> Iterator[tuple[Child, int]]:
    with TemporaryDirectory(prefix="emceepee-bench-") as directory:
        port = free_port()
        state = () if "--state" in options else ("--state", f"sqlite:{directory}/state.db")
        servers = {"backend": server_entry(back, Era.HANDSHAKE)}
        with running(emceepee(servers, str(port), *state, *options), beside_us=True) as child:
            yield child, port


def _workers(rounds: int) -> tuple[_Best, _Best]:
    found = _Best(), _Best()
    with ExitStack() as stack:
        back = stack.enter_context(backend(Wire.HTTP, Era.HANDSHAKE))
        drivers = []
        for count in (1, 2):
            child, port = stack.enter_context(_emceepee(back, "--workers", str(count)))
            driver = HttpDriver(EMCEEPEE, child, port, Era.HANDSHAKE)
            driver.open()
            driver.load(WARM_SECONDS, CALLERS, SMALL)
            drivers.append(driver)
        for _ in range(rounds):
            for driver, best in zip(drivers, found, strict=True):
                best.add(driver.load(ROUND_SECONDS, CALLERS, SMALL))
    return found


def _hop() -> tuple[Sample, Sample]:
    with ExitStack() as stack:
        back = stack.enter_context(backend(Wire.HTTP, Era.HANDSHAKE))
        state = stack.enter_context(TemporaryDirectory(prefix="emceepee-bench-"))
        ports = []
        for _ in range(2):
            child, port = stack.enter_context(_emceepee(back, "--state", f"sqlite:{state}/state.db"))
            HttpDriver(EMCEEPEE, child, port, Era.HANDSHAKE).open()
            ports.append(port)
        return uvloop.run(_compare(ports))


async def _compare(ports: list[int]) -> tuple[Sample, Sample]:
    """One session, called at the replica that has it and at the other one in turns."""
    holder, other = ports
    session = HttpSession(holder, Era.HANDSHAKE)
    await session.open()
    name, arguments = EMCEEPEE.call(SMALL)
    request = session.call_bytes(name, arguments)
    ways = {holder: Sample(), other: Sample()}
    for port in ports:
        await call_for(WARM_SECONDS, [request], port=port, mark=mark_of(SMALL))
    for _ in range(HOP_ROUNDS):
        for port, sample in ways.items():
            found = await call_for(HOP_SECONDS, [request], port=port, mark=mark_of(SMALL))
            sample.latencies += found.latencies
    session.line.close()
    return ways[holder], ways[other]
