"""What more processes bring and cost: calls a second of two workers and of one, and what a hop adds to a call.

The workers, their callers and the backend share all cores, and those that are compared take turns. Two processes that
share nothing show what the machine itself allows: its cores may be halves of one.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from statistics import median
from tempfile import TemporaryDirectory

import uvloop

from bench.contestants import EMCEEPEE, HttpDriver, backend, emceepee, server_entry
from bench.load.http import Caller, call_for, call_on
from bench.load.http_client import SESSION_HEADER, HttpLine, HttpSession
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
ONE, TWO, APART = "one worker", "two workers", "two processes that share nothing"
APART_SHARE = f"calls a second of {APART}, share of one worker's, {CALLERS} callers"
APART_CPU_SHARE = f"CPU of a call with {APART}, share of that with one worker, {CALLERS} callers"
HOP = "p50 that a hop to another replica adds, one caller"


def measure(settings: Settings, results: Results) -> None:
    if not settings.has(EMCEEPEE):
        return
    progress("replicas: workers")
    with on_all_cores():
        found = _workers(QUICK_ROUNDS if settings.is_quick else ROUNDS)
    for name, rounds in found.items():
        results.add(PART, f"{name}: calls a second, {CALLERS} callers", median(s.rate for s in rounds), "/s")
        results.add(PART, f"{name}: CPU of a call", median(s.cpu_us for s in rounds), "µs")
    for name, share, cpu_share in ((TWO, SHARE, CPU_SHARE), (APART, APART_SHARE, APART_CPU_SHARE)):
        pairs = list(zip(found[ONE], found[name], strict=True))
        results.add(PART, share, median(two.rate / one.rate for one, two in pairs), "")
        results.add(PART, cpu_share, median(two.cpu_us / one.cpu_us for one, two in pairs), "")
    progress("replicas: a hop")
    straight, passed_on = _hop()
    results.add(PART, "at the replica that has the session: p50", straight.percentile_ms(0.5), "ms")
    results.add(PART, "passed on by another: p50", passed_on.percentile_ms(0.5), "ms")
    results.add(PART, HOP, passed_on.percentile_ms(0.5) - straight.percentile_ms(0.5), "ms")


@contextmanager
def _emceepee(back: str, *options: str) -> Iterator[tuple[Child, int]]:
    with TemporaryDirectory(prefix="emceepee-bench-") as directory:
        port = free_port()
        state = () if "--state" in options else ("--state", f"sqlite:{directory}/state.db")
        servers = {"backend": server_entry(back, Era.HANDSHAKE)}
        with running(emceepee(servers, str(port), *state, *options), beside_us=True) as child:
            yield child, port


def _workers(rounds: int) -> dict[str, list[Sample]]:
    with ExitStack() as stack:
        back = stack.enter_context(backend(Wire.HTTP, Era.HANDSHAKE))

        def start(*options: str) -> tuple[Child, int]:
            child, port = stack.enter_context(_emceepee(back, *options))
            HttpDriver(EMCEEPEE, child, port, Era.HANDSHAKE).open()
            return child, port

        one = start("--workers", "1")
        contestants = {ONE: [one], TWO: [start("--workers", "2")], APART: [one, start("--workers", "1")]}
        return uvloop.run(_take_turns(contestants, rounds))


async def _take_turns(contestants: dict[str, list[tuple[Child, int]]], rounds: int) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {name: [] for name in contestants}
    for _ in range(rounds):
        for name, processes in contestants.items():
            async with _callers(processes, halves=name != ONE) as callers:
                await call_on(callers, WARM_SECONDS, mark=mark_of(SMALL))
                spent = sum(child.cpu_seconds() for child, _ in processes)
                sample = await call_on(callers, ROUND_SECONDS, mark=mark_of(SMALL))
                sample.cpu_seconds = sum(child.cpu_seconds() for child, _ in processes) - spent
            found[name].append(sample)
    return found


@asynccontextmanager
async def _callers(processes: list[tuple[Child, int]], *, halves: bool) -> AsyncIterator[list[Caller]]:
    """The kernel leads a connection to one worker or the other. With few of them that is rarely half and half, so those
    that one has too many of are closed again: what two workers can do is asked, not what chance gives them."""
    share = CALLERS // 2 if halves else CALLERS
    of_each: dict[str, list[Caller]] = {}
    lines = []
    while sum(len(callers) for callers in of_each.values()) < CALLERS:
        for _, port in processes:
            lines.append(HttpLine("127.0.0.1", port))
            slot, caller = await _open_caller(port, lines[-1])
            mine = of_each.setdefault(f"{port}-{slot}", [])
            if len(mine) < share:
                mine.append(caller)
            else:
                caller.close()
    try:
        yield [caller for callers in of_each.values() for caller in callers]
    finally:
        for line in lines:
            line.close()


async def _open_caller(port: int, line: HttpLine) -> tuple[str, Caller]:
    """Which worker has its session, and it. It stays on the connection on which that was opened, as clients do."""
    session = HttpSession(port, Era.HANDSHAKE, line=line)
    await session.open()
    caller = Caller(session.call_bytes(*EMCEEPEE.call(SMALL)))
    line.leave_to(caller)
    return session.headers[SESSION_HEADER].rpartition("-")[2], caller


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
