"""Prepare the process: standard descriptors, memory allocator, and protection from inspection."""

import ctypes
import os
import sys
from collections.abc import Mapping
from contextlib import suppress

STDIN, STDOUT, STDERR = 0, 1, 2
KEPT_BYTES = 32 << 20  # of free memory that the allocator keeps instead of returning it to the system
LARGE_BYTES = 8 << 20  # allocations of at least this size use mmap
TRACEABLE_VARIABLE = "EMCEEPEE_TRACEABLE"
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8
_PR_SET_DUMPABLE = 4


def fill_closed() -> frozenset[int]:
    """Open the null device in place of each closed standard stream, and return the closed ones.

    Otherwise the next file, socket, or pipe gets that number, and child processes inherit it as a standard stream.
    """
    closed = set()
    for number in (STDIN, STDOUT, STDERR):
        try:
            os.fstat(number)
        except OSError:
            closed.add(number)
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # gets the lowest free number, which is this one
    if STDERR in closed:
        sys.stderr = open(STDERR, "w", encoding="utf-8", closefd=False)  # noqa: SIM115  # for as long as the process
    return frozenset(closed)


def greet_person() -> None:
    """On a terminal, explain that this process waits for an MCP client, because none started it."""
    if os.isatty(STDIN):
        sys.stderr.write(
            "emceepee: serving MCP on standard input and output: an MCP client starts this command and writes to it. "
            "`emceepee --help` lists other commands, `emceepee install` configures your clients. Press Ctrl-C to "
            "stop.\n"
        )


def keep_freed_memory() -> None:
    """Keep freed memory in the process. Other allocators than glibc's are unaffected.

    With glibc's defaults, every large result uses fresh pages, which the kernel has to clear: 5 MB through the proxy
    took 23 ms of CPU, and takes 9.
    """
    with suppress(OSError, AttributeError):
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_TRIM_THRESHOLD, KEPT_BYTES)
        libc.mallopt(_M_MMAP_THRESHOLD, LARGE_BYTES)
        libc.mallopt(_M_ARENA_MAX, 1)  # otherwise each thread keeps that much memory


def hide_process(environment: Mapping[str, str]) -> None:
    """On Linux, restrict access to this process's environment and memory to root. Elsewhere, do nothing.

    Debuggers then need root, and core dumps are disabled, unless EMCEEPEE_TRACEABLE is set.
    """
    if sys.platform == "linux" and not environment.get(TRACEABLE_VARIABLE):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
