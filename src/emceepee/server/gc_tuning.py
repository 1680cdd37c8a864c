"""What the collector looks at, and how often."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

GEN0_THRESHOLD = (
    10_000  # objects more than at its last round, before it looks at them; Python's own 700 are those of six calls
)
GEN1_THRESHOLD = 1  # over young ones, between two that include those of the round before


@contextmanager
def collect_less_while_loading() -> Iterator[None]:
    """Modules make a hundred thousand objects and no garbage: looking for it is a twelfth of the time to start."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def freeze_startup_objects() -> None:
    """What start-up made stays for good: the collector need not look at it again, which keeps pauses short.

    Calls leave nothing for it, so it need not come at every burst of them. Sessions that ended do, some sixty objects
    each, so it must not stay away for long either.
    """
    gc.freeze()
    gc.set_threshold(GEN0_THRESHOLD, GEN1_THRESHOLD)
