"""A worker's connection to its parent process: it reports events, and its end stops the worker."""

import json
import os
import signal
import socket
import sys
import threading
from collections.abc import MutableMapping, Sequence
from contextlib import suppress

WORKER_VARIABLE = "EMCEEPEE_WORKER"  # set by the parent for its workers only
STOP_SECONDS = 45.0  # a worker's shutdown timeout, longer than the sum of its own shutdown steps
LONGEST_REPORT = 64 << 10  # bytes, including the line break
LONGEST_TEXT = 4000  # characters of a report; each may take twelve bytes when escaped
# Kinds of reports. Their texts are an address, a link to the console, or an error message.
READY, LINK, FAILED = "ready", "link", "failed"


class NoWorker(ValueError):
    """The environment variable is set, but not by a parent process."""


class WorkerSpec:
    """One of several processes that serve at the same address. `index` is its number."""

    def __init__(self, index: int, line: socket.socket) -> None:
        self.index, self._line = index, line

    def report(self, kind: str, text: str) -> bool:
        """Send a report, and return whether the parent received it."""
        try:
            self._line.sendall(json.dumps([kind, text[:LONGEST_TEXT]]).encode() + b"\n")
        except OSError:
            return False
        return True

    def end_with_parent(self) -> None:
        """Stop when the parent ends for any reason. A thread waits for it, because the event loop may be busy."""
        threading.Thread(target=self._wait_for_end, name="emceepee-parent", daemon=True).start()

    def _wait_for_end(self) -> None:
        with suppress(OSError):
            while self._line.recv(1):
                pass
        os.kill(os.getpid(), signal.SIGTERM)
        threading.Event().wait(STOP_SECONDS)
        os._exit(1)


def read_report(line: bytes) -> tuple[str, str] | None:
    """Return the report's kind and text, or None if no worker of ours wrote the line."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or len(found) != 2 or not all(isinstance(item, str) for item in found):
        return None
    return found[0], found[1]


def claim_worker(environment: MutableMapping[str, str]) -> WorkerSpec | None:
    """Return this process's worker identity, if any, and hide it from child processes. Raises: NoWorker."""
    if (given := environment.pop(WORKER_VARIABLE, None)) is None:
        return None
    index, _, descriptor = given.partition(":")
    try:
        line = socket.socket(fileno=int(descriptor))
        line.set_inheritable(False)
        return WorkerSpec(int(index), line)
    except (ValueError, OSError):
        raise NoWorker(f"{WORKER_VARIABLE} is reserved for processes that --workers starts; unset it") from None


def worker_command(arguments: Sequence[str] | None, port: int) -> list[str]:
    """Return the parent's own command line with a worker's flags appended: the last of two equal flags wins.

    With `arguments` None, use the interpreter's original arguments, which include the name of the program.
    """
    own = sys.orig_argv[1:] if arguments is None else ["-P", "-m", "emceepee", *arguments]
    return [sys.executable, *own, "--port", str(port), "--workers", "1"]
