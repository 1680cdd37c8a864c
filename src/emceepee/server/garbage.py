"""When the collector runs, and over what."""

import gc

YOUNG, MIDDLE, OLD = 20_000, 20, 50  # Python's own 700, 10, 10 are for programs with few objects that live for long


def collect_seldom() -> None:
    """What start-up made stays for good: the collector need not look at it again. What a call makes is gone with it;
    sessions and their journals live longer, and are not to be walked through every few hundred calls."""
    gc.freeze()
    gc.set_threshold(YOUNG, MIDDLE, OLD)
