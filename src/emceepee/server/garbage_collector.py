"""Tuning of the garbage collector: the objects that it scans, and how often it runs."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

GEN0_THRESHOLD = 10_000  # new objects before a young collection; six calls exceed Python's default of 700
GEN1_THRESHOLD = 1  # young collections between two collections that also scan the next generation


@contextmanager
def collect_less_while_loading() -> Iterator[None]:
    """Pause collection. Modules create 100,000 objects and no garbage: scanning them takes a twelfth of startup."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def freeze_startup_objects() -> None:
    """Exempt startup objects from collection, because they live as long as the process. This keeps pauses short.

    Calls leave no garbage, so the collector need not run at every burst of calls. An ended session leaves some sixty
    objects, so the collector must not wait too long either.
    """
    gc.freeze()
    gc.set_threshold(GEN0_THRESHOLD, GEN1_THRESHOLD)
