"""A worker's side of the line to the process that started it: what it reports, and that it ends with that one."""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import MutableMapping, Sequence
from contextlib import suppress

WORKER_VARIABLE = "EMCEEPEE_WORKER"  # set by the parent, for its workers alone
STOP_SECONDS = 45.0  # for a worker to stop in order, which is more than all its closings are given
LONGEST_REPORT = 64 << 10  # bytes, with its end
LONGEST_TEXT = 4000  # characters of a report: escaped, each may take twelve bytes
READY, LINK, FAILED = "ready", "link", "failed"  # kinds of reports: an address, a link to the console, a sentence


class NoWorker(ValueError):
    """The variable is set, and not by a parent."""


class WorkerSpec:
    """One of several processes that serve at the same address. `index` is its number among them."""

    def __init__(self, index: int, line: socket.socket) -> None:
        self.index, self._line = index, line

    def report(self, kind: str, text: str) -> bool:
        """Whether there was someone to report to."""
        try:
            self._line.sendall(json.dumps([kind, text[:LONGEST_TEXT]]).encode() + b"\n")
        except OSError:
            return False
        return True

    def end_with_parent(self) -> None:
        """A thread, as the event loop may be busy: stop when the parent is gone, whatever ended it."""
        threading.Thread(target=self._wait_for_end, name="emceepee-parent", daemon=True).start()

    def _wait_for_end(self) -> None:
        with suppress(OSError):
            while self._line.recv(1):
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(STOP_SECONDS)
        os._exit(1)


def read_report(line: bytes) -> tuple[str, str] | None:
    """Return its kind and its text, or None if no worker of ours wrote it."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or len(found) != 2 or not all(isinstance(item, str) for item in found):
        return None
    return found[0], found[1]


def claim_worker(environment: MutableMapping[str, str]) -> WorkerSpec | None:
    """The worker that this process is to be, if any. Programs that it starts hear nothing of it. Raises: NoWorker."""
    if (given := environment.pop(WORKER_VARIABLE, None)) is None:
        return None
    index, _, descriptor = given.partition(":")
    try:
        line = socket.socket(fileno=int(descriptor))
        line.set_inheritable(False)
        return WorkerSpec(int(index), line)
    except (ValueError, OSError):
        raise NoWorker(f"{WORKER_VARIABLE} is for the processes that --workers starts; unset it") from None


def worker_command(arguments: Sequence[str] | None, port: int) -> list[str]:
    """The parent's own command line, with what is different; of two flags the last one counts.

    `arguments` None: those that the interpreter was started with, and so the program too, whatever its name is.
    """
    own = sys.orig_argv[1:] if arguments is None else ["-P", "-m", "emceepee", *arguments]
    return [sys.executable, *own, "--port", str(port), "--workers", "1"]
