"""The price of a costly request for all other callers: waiting time, and memory."""

import http.client
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from support.callers.http_process import HttpProcess
from support.system.processes import memory_of

ROOM = 5  # for a busy machine, over what is promised: 0.25 s and 64 MB
LONGEST_WAIT, MOST_GROWTH = 0.25 * ROOM, (64 << 20) * ROOM
BOUND = 60.0  # seconds for one request
PAUSE = 0.01


@dataclass(slots=True)
class Cost:
    """The effect of the request on all other callers."""

    longest_wait: float = 0.0
    growth: int = 0  # bytes, at the highest


@contextmanager
def cost_for_others(endpoint: HttpProcess) -> Iterator[Cost]:
    """In a thread: the loop of the test has work of its own."""
    pid, cost, left = endpoint.process.pid, Cost(), threading.Event()
    Path(f"/proc/{pid}/clear_refs").write_text("5")  # resets the peak
    before = memory_of(pid)
    host, port = re.findall(r"//([^:/]+):(\d+)", endpoint.origin)[0]

    def watch() -> None:
        connection = http.client.HTTPConnection(host, int(port), timeout=BOUND)
        is_last = False
        while not is_last:
            is_last = left.is_set()
            began = time.monotonic()
            connection.request("GET", "/healthz")
            connection.getresponse().read()
            cost.longest_wait = max(cost.longest_wait, time.monotonic() - began)
            left.wait(PAUSE)
        connection.close()

    watching = threading.Thread(target=watch)
    watching.start()
    try:
        yield cost
    finally:
        left.set()
        watching.join(BOUND)
        peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
        assert peak is not None
        cost.growth = (int(peak[1]) << 10) - before
