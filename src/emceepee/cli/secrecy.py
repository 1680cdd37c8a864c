"""Keeps other programs of the same user, such as servers' processes, from reading what emceepee holds."""

import ctypes
import sys
from collections.abc import Mapping
from contextlib import suppress

TRACEABLE_VARIABLE = "EMCEEPEE_TRACEABLE"
_PR_SET_DUMPABLE = 4


def hide_process(environment: Mapping[str, str]) -> None:
    """On Linux, only root can read our environment and memory from now on. Elsewhere nothing happens.

    A debugger needs root then, and there is no core dump, unless EMCEEPEE_TRACEABLE is set.
    """
    if sys.platform == "linux" and not environment.get(TRACEABLE_VARIABLE):
        with suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
