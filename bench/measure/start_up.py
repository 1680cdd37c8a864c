"""Start-up: from the start of the process to its first answer."""

from time import perf_counter

from bench.contestants import DIRECT, MCP_PROXY, Contestant, backend, started
from bench.results import Results
from bench.settings import Settings, progress
from bench.work import Era, Shape, Wire

PART = "start-up"


def measure(settings: Settings, results: Results) -> None:
    for front in Wire:
        for contestant in settings.contestants:
            if contestant is not DIRECT:
                progress(f"start-up of {contestant.name} over {front}")
                shape = Shape(front, _back(contestant, front))
                best = min(_once(contestant, shape) for _ in range(settings.rounds))
                results.add(PART, f"{front}: first answer after", best, "s", contestant.name)


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
