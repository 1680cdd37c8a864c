"""Writes log lines in its own thread, so that a slow reader or a full disk delays nothing else."""

import errno
import os
import select
import stat
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Empty, SimpleQueue

from emceepee.paths import PRIVATE_FILE

MOST_BYTES = 2 << 20  # waiting to be written: a burst of about ten thousand lines
BATCH_BYTES = 64 << 10  # written at once
FLUSH_SECONDS = 1.0  # at exit, for a reader that is still reading


class LogWriter:
    """Queues lines without waiting, and drops lines that do not fit. The drops are counted and reported later."""

    def __init__(
        self,
        descriptor: int,
        *,
        dropped_line: Callable[[int], str],  # gets the count
        on_failure: Callable[[OSError], None] = lambda _: None,
        most_bytes: int = MOST_BYTES,
        gives_up: bool = False,
    ) -> None:
        """If `gives_up`, a failure stops all writing, because a line is meaningless without the lines before it."""
        self._descriptor, self._on_failure, self._most_bytes = descriptor, on_failure, most_bytes
        self._gives_up = gives_up
        self._dropped_line = dropped_line
        self._queue: SimpleQueue[bytes | threading.Event | None] = SimpleQueue()
        self._putting = threading.RLock()  # reentrant: a finalizer may log at any moment
        # Only one side writes each number, so that the thread needs no lock.
        self._put_bytes = self._written_bytes = 0
        self._dropped = self._failed = self._reported = 0  # lines
        self._is_failing = self._is_mid_line = False
        self._thread: threading.Thread | None = None

    def put(self, line: str) -> None:
        data = _encoded(line)
        with self._putting:
            if self._put_bytes - self._written_bytes + len(data) > self._most_bytes:
                self._dropped += 1
                return
            self._put_bytes += len(data)
            self._queue.put(data)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="log-writer", daemon=True)
                self._thread.start()

    def flush(self, *, within: float = FLUSH_SECONDS) -> bool:
        """Wait until all lines are written, with a time limit. Return whether they were."""
        if self._thread is None or not self._thread.is_alive():
            return True
        reached = threading.Event()
        self._queue.put(reached)
        return reached.wait(within)

    def close(self) -> None:
        """Close the descriptor once all lines are written, without waiting for it."""
        self._queue.put(None)
        if self._thread is None:
            os.close(self._descriptor)

    def _run(self) -> None:
        while True:
            lines, behind = self._batch()
            if lines:
                self._write(lines)
            self._report_dropped()
            if isinstance(behind, threading.Event):
                behind.set()
            elif behind is not None:
                os.close(self._descriptor)
                return

    def _batch(self) -> tuple[list[bytes], threading.Event | bool | None]:
        """Return the next lines and the item after them: an event to set, True for the end, None for nothing."""
        lines: list[bytes] = []
        item = self._queue.get()
        size = 0
        while isinstance(item, bytes):
            lines.append(item)
            size += len(item)
            try:
                item = self._queue.get_nowait() if size < BATCH_BYTES else b""
            except Empty:
                item = b""
            if not item:
                return lines, None
        return lines, True if item is None else item

    def _write(self, lines: list[bytes]) -> None:
        if not self._try(b"".join(lines)):
            self._failed += len(lines)
        self._written_bytes += sum(map(len, lines))

    def _report_dropped(self) -> None:
        missing = self._dropped + self._failed - self._reported
        if missing and not self._is_failing and self._try(_encoded(self._dropped_line(missing))):
            self._reported += missing

    def _try(self, data: bytes) -> bool:
        if self._gives_up and self._is_failing:
            return False
        try:
            self._write_all(b"\n" + data if self._is_mid_line else data)
        except OSError as error:
            if not self._is_failing:
                self._on_failure(error)
            self._is_failing = True
            return False
        self._is_failing = False
        return True

    def _write_all(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            try:
                count = os.write(self._descriptor, view)
            except BlockingIOError:  # another program that shares the descriptor made it non-blocking
                writable = select.poll()
                writable.register(self._descriptor, select.POLLOUT)
                writable.poll()
                continue
            self._is_mid_line = view[count - 1] != ord("\n")
            view = view[count:]


def open_log_file(path: Path) -> int:
    """Open a private log file, never through a link that another user may have put there. Raises: OSError."""
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
    try:
        # O_NONBLOCK: opening a named pipe without a reader would wait.
        descriptor = os.open(path, flags | os.O_NONBLOCK, PRIVATE_FILE)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise OSError(errno.ELOOP, "it is a symbolic link") from None
        raise
    found = os.fstat(descriptor)
    if stat.S_ISREG(found.st_mode) and found.st_uid == os.geteuid():
        os.fchmod(descriptor, PRIVATE_FILE)
    return descriptor


def _encoded(line: str) -> bytes:
    return line.encode("utf-8", "backslashreplace") + b"\n"
