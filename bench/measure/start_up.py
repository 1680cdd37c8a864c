"""Start-up: from the start of the process to its first answer, and what one that waits for callers takes."""

import asyncio
import compileall
import subprocess
import sys
from time import perf_counter, sleep

from bench.contestants import DIRECT, EMCEEPEE, MCP_PROXY, Contestant, backend, started
from bench.measure.emceepee_process import SETTLE_SECONDS, emceepee_with, until_it_listens
from bench.processes import ROOT
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import Era, Shape, Wire

PART = "start-up"
SHARE = "first answer over stdio, share of mcp-proxy's"
COMMAND = "emceepee version"
IDLE = "an idle serve"


def measure(settings: Settings, results: Results) -> None:
    compileall.compile_dir(ROOT / "src", quiet=2)  # as an installation does
    for front in Wire:
        best = _first_answers(settings, front)
        for contestant, seconds in best.items():
            results.add(PART, f"{front}: first answer after", seconds, "s", contestant.name)
        if front is Wire.STDIO and EMCEEPEE in best and MCP_PROXY in best:
            results.add(PART, SHARE, best[EMCEEPEE] / best[MCP_PROXY], "")
    if settings.has(EMCEEPEE):
        progress("start-up: a command, and an idle serve")
        results.add(PART, COMMAND, min(_command() for _ in range(settings.rounds)), "s")
        results.add(PART, IDLE, _idle(), "B")


def _first_answers(settings: Settings, front: Wire) -> dict[Contestant, float]:
    """In turns: what keeps the machine busy then keeps it busy for all."""
    taken: dict[Contestant, list[float]] = {}
    for _ in range(settings.rounds):
        for contestant in settings.contestants:
            if contestant is not DIRECT:
                progress(f"start-up of {contestant.name} over {front}")
                shape = Shape(front, _back(contestant, front))
                taken.setdefault(contestant, []).append(_once(contestant, shape))
    return {contestant: min(seconds) for contestant, seconds in taken.items()}


def _back(contestant: Contestant, front: Wire) -> Wire:
    if contestant is MCP_PROXY:
        return Wire.STDIO if front is Wire.HTTP else Wire.HTTP
    return Wire.HTTP


def _once(contestant: Contestant, shape: Shape) -> float:
    with backend(shape.back, Era.HANDSHAKE) as back:
        began = perf_counter()
        with started(contestant, shape, Era.HANDSHAKE, back) as driver:
            driver.open()
            return perf_counter() - began


def _command() -> float:
    began = perf_counter()
    subprocess.run((sys.executable, "-m", *COMMAND.split()), stdout=subprocess.DEVNULL, check=True)
    return perf_counter() - began


def _idle() -> int:
    """With state where it usually is, and nobody who calls."""
    with emceepee_with({}) as proxy:
        asyncio.run(until_it_listens(proxy.child, proxy.port))
        sleep(SETTLE_SECONDS)
        return proxy.child.resident_bytes()
