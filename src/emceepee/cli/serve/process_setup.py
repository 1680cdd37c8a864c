"""What the process needs before anything else: its descriptors, its allocator, and that nobody looks into it."""

import ctypes
import os
import sys
from collections.abc import Mapping
from contextlib import suppress

STDIN, STDOUT, STDERR = 0, 1, 2
KEPT_BYTES = 32 << 20  # of free memory, before any of it goes back to the system
LARGE_BYTES = 8 << 20  # from which on a piece of memory is the system's own affair
TRACEABLE_VARIABLE = "EMCEEPEE_TRACEABLE"
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_PR_SET_DUMPABLE = 4


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


def greet_person() -> None:
    """On a terminal, say on standard error what this process waits for: no client starts it there."""
    if os.isatty(STDIN):
        sys.stderr.write(
            "emceepee: serving MCP on standard input and output: an MCP client starts this command and writes to it. "
            "`emceepee --help` lists other commands, `emceepee install` configures your clients. Ctrl-C ends it.\n"
        )


def keep_freed_memory() -> None:
    """With glibc's defaults every large result is made of fresh pages, which the kernel has to clear: 5 MB through the
    proxy took 23 ms of CPU, and takes 9. With another allocator nothing happens."""
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        libc.mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        libc.mallopt(_M_ARENA_MAX, 1)  # else each thread keeps that much for itself


def hide_process(environment: Mapping[str, str]) -> None:
    """On Linux, only root can read our environment and memory from now on. Elsewhere nothing happens.

    A debugger needs root then, and there is no core dump, unless EMCEEPEE_TRACEABLE is set.
    """
    if sys.platform == "linux" and not environment.get(TRACEABLE_VARIABLE):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
