"""Standard input, output and error, which whoever starts a process may have closed."""

import os
import sys

STDIN, STDOUT, STDERR = 0, 1, 2


def fill_closed() -> frozenset[int]:
    """Put the null device in the place of each that is closed, and say which ones were.

    Else the next file, socket or pipe gets its number, and is given to children as if it were that.
    """
    closed = set()
    for number in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            closed.add(number)
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest number that is free: this one
    if STDERR in closed:
        sys.stderr = open(STDERR, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # for as long as the process
    return frozenset(closed)
