"""Calls: every contestant at every shape, era, number of callers and size."""

from collections.abc import Iterator
from contextlib import ExitStack

from bench.contestants import QUICK_CONTESTANTS, Contestant, Driver, backend, started
from bench.results import Kind, Results
from bench.settings import Settings, progress
from bench.work import LARGE, MEDIUM, SHAPES, SMALL, Era, Shape, Size

CALLERS = (1, 16, 64)
WARM_SECONDS = 0.2
SLOW = 50  # calls a second


def measure(settings: Settings, results: Results, shape: Shape) -> None:
    for era in Era if shape is SHAPES[0] else settings.eras:
        _one_era(settings, results, shape, era)


def works(settings: Settings, shape: Shape, era: Era) -> Iterator[tuple[int, Size]]:
    """Large results in both eras only over HTTP, to keep the run short."""
    if settings.is_quick:
        yield from ((1, SMALL), (1, MEDIUM), (16, SMALL), (16, MEDIUM))
        return
    yield from ((callers, SMALL) for callers in CALLERS)
    if era is Era.HANDSHAKE or shape is SHAPES[0]:
        yield from ((1, MEDIUM), (16, MEDIUM), (1, LARGE))


def _one_era(settings: Settings, results: Results, shape: Shape, era: Era) -> None:
    with ExitStack() as stack:
        back = stack.enter_context(backend(shape.back, era))
        drivers: list[Driver] = []
        for contestant in settings.contestants:
            if contestant.can(shape, era):
                progress(f"{shape.title}, {era}: starting {contestant.name}")
                driver = stack.enter_context(started(contestant, shape, era, back))
                driver.open()
                driver.load(WARM_SECONDS, 1, SMALL)
                drivers.append(driver)
        # The contestants take turns within a round, so that a slow minute of the machine hits them all.
        for number in range(settings.rounds):
            for callers, size in works(settings, shape, era):
                progress(f"{shape.title}, {era}, round {number + 1}: {callers} callers, {size.title}")
                kind = Kind(shape.key, era, callers, size.tool)
                for driver in drivers:
                    if not _is_known_to_be_slow(results, kind, driver.contestant):
                        results.add_round(kind, driver.contestant.name, driver.load(settings.seconds, callers, size))


def _is_known_to_be_slow(results: Results, kind: Kind, contestant: Contestant) -> bool:
    """One round is enough to show a difference of a hundred times, and each takes long."""
    cell = results.cell(kind, contestant.name)
    return cell is not None and contestant not in QUICK_CONTESTANTS and cell.rate < SLOW
