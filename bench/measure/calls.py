"""Calls: every contestant at every shape, era, number of callers and size."""

from collections.abc import Iterator
from contextlib import ExitStack

from bench.contestants import Driver, backend, started
from bench.results import Kind, Results
from bench.settings import Settings, progress
from bench.work import LARGE, MEDIUM, SHAPES, SMALL, Era, Shape, Size

CALLERS = (1, 16, 64)
WARM_SECONDS = 0.2


def measure(settings: Settings, results: Results, shape: Shape) -> None:
    for era in Era if shape is SHAPES[0] else settings.eras:
        _one_era(settings, results, shape, era)


def works(settings: Settings, shape: Shape, era: Era) -> Iterator[tuple[int, Size]]:
    """Large results are measured where they differ: the era changes nothing about them."""
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
                for driver in drivers:
                    sample = driver.load(settings.seconds, callers, size)
                    results.add_round(Kind(shape.key, era, callers, size.tool), driver.contestant.name, sample)
