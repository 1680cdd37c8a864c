"""Gain and cost of more processes: calls per second of two workers and of one, and a hop's share of a call.

The workers, their callers and the backend share all cores, and the contestants take turns. Callers and backend
wait until a core is free. They are also left to interrupt the workers, as the system does by default, to show what that
costs.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from statistics import median
from tempfile import TemporaryDirectory

import uvloop

from bench.contestants import EMCEEPEE, HttpDriver, backend, emceepee, server_entry
from bench.load.http import Caller, call_for, call_on
from bench.load.http_client import SESSION_HEADER, HttpLine, HttpSession
from bench.load.sample import Sample
from bench.processes import Child, free_port, load_waiting_its_turn, on_all_cores, running
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import SMALL, Era, Wire, mark_of

PART = "replicas"
CALLERS = 16
STARTS, QUICK_STARTS = 5, 3  # of each: two processes that do the same differ by some percent
ROUNDS = 5
ROUND_SECONDS = 0.5  # short, so that those of a pair find the machine alike
HOP_ROUNDS, HOP_SECONDS = 20, 0.3
WARM_SECONDS = 0.2
SHARE = f"calls a second of two workers, share of one's, {CALLERS} callers"
CPU_SHARE = f"CPU of a call with two workers, share of that with one, {CALLERS} callers"
ONE, TWO = "one worker", "two workers"
INTERRUPTED = ", interrupted by callers and backend"
HOP = "p50 that a hop to another replica adds, one caller"


def measure(settings: Settings, results: Results) -> None:
    if not settings.has(EMCEEPEE):
        return
    progress("replicas: workers")
    with on_all_cores():
        found = _workers(QUICK_STARTS if settings.is_quick else STARTS)
    for name, rounds in found.items():
        results.add(PART, f"{name}: calls a second", median(s.rate for s in rounds), "/s")
        results.add(PART, f"{name}: CPU of a call", median(s.cpu_us for s in rounds), "µs")
    for load in ("", INTERRUPTED):
        pairs = list(zip(found[ONE + load], found[TWO + load], strict=True))
        results.add(PART, SHARE + load, median(two.rate / one.rate for one, two in pairs), "")
        results.add(PART, CPU_SHARE + load, median(two.cpu_us / one.cpu_us for one, two in pairs), "")
    progress("replicas: a hop")
    with on_all_cores():
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
        with running(emceepee(servers, str(port), *state, *options)) as child:
            yield child, port


@dataclass(frozen=True, slots=True)
class _Contestant:
    child: Child
    port: int
    workers: int


def _workers(starts: int) -> dict[str, list[Sample]]:
    found: dict[str, list[Sample]] = {name + load: [] for load in ("", INTERRUPTED) for name in (ONE, TWO)}
    with backend(Wire.HTTP, Era.HANDSHAKE) as back:
        for _ in range(starts):
            with ExitStack() as stack:

                def start(workers: int, stack: ExitStack = stack) -> _Contestant:
                    child, port = stack.enter_context(_emceepee(back, "--workers", str(workers)))
                    HttpDriver(EMCEEPEE, child, port, Era.HANDSHAKE).open()
                    return _Contestant(child, port, workers)

                uvloop.run(_take_turns({ONE: start(1), TWO: start(2)}, found))
    return found


async def _take_turns(contestants: dict[str, _Contestant], found: dict[str, list[Sample]]) -> None:
    for _ in range(ROUNDS):
        for load in ("", INTERRUPTED):
            for name, contestant in contestants.items():
                with nullcontext() if load else load_waiting_its_turn():
                    found[name + load].append(await _turn(contestant))


async def _turn(contestant: _Contestant) -> Sample:
    async with _callers(contestant) as callers:
        await call_on(callers, WARM_SECONDS, mark=mark_of(SMALL))
        spent = contestant.child.cpu_seconds()
        sample = await call_on(callers, ROUND_SECONDS, mark=mark_of(SMALL))
        sample.cpu_seconds = contestant.child.cpu_seconds() - spent
    return sample


@asynccontextmanager
async def _callers(contestant: _Contestant) -> AsyncIterator[list[Caller]]:
    """Yield connections that are spread evenly. The kernel assigns each to a worker, and few of them are rarely
    half and half, so the surplus is closed: the measurement is about two workers, not about chance."""
    of_each: dict[str, list[Caller]] = {}
    lines = []
    while sum(len(callers) for callers in of_each.values()) < CALLERS:
        lines.append(HttpLine("127.0.0.1", contestant.port))
        slot, caller = await _open_caller(contestant.port, lines[-1])
        mine = of_each.setdefault(slot, [])
        if len(mine) < CALLERS // contestant.workers:
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
