"""Ports for programs that need a fixed one. No other test takes them."""

import itertools
import os
import random
import socket

FIRST, PER_WORKER = 20_000, 1_000  # below the ephemeral range, which begins at 32768 on Linux
_WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_OWN = range(FIRST + _WORKER * PER_WORKER, FIRST + (_WORKER + 1) * PER_WORKER)
_candidates = itertools.cycle(random.Random(os.getpid()).sample(_OWN, PER_WORKER))


def free_port() -> int:
    """Another one each time."""
    for port in itertools.islice(_candidates, PER_WORKER):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("every port of this worker is in use")
