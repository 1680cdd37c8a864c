"""The destinations of recordings: files that the operator configured, or memory until a person retrieves them."""

import fcntl
import os
from asyncio import to_thread
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from urllib.parse import urlsplit
from weakref import WeakSet

from emceepee.backends.http1.origin import place_of
from emceepee.backends.recording.entries import EntryKind, is_header
from emceepee.backends.recording.recorder import Put, Recorder
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.clock import Clock
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.state.limits import Limits
from emceepee.telemetry.log_writer import LogWriter, open_log_file
from emceepee.telemetry.logs import EventLog
from emceepee.wire.codec import decode, encode_text

log = EventLog("backends")
LONGEST_HEADER = 64 << 10
FLUSH_SECONDS = 10.0  # to write to the disk before the process ends
NO_RECORDING = "it contains something other than a recording and was left unchanged; specify another file"

IN_USE = "another server or another emceepee is already recording to it; specify another file"


@dataclass(frozen=True, slots=True)
class _File:
    writer: LogWriter
    recorder: Recorder
    descriptor: int


class MemoryRecording:
    """A recording that a person started. It ends with its connection, or when the person retrieves it."""

    def __init__(self, recorder: Recorder, lines: list[bytes]) -> None:
        self.recorder, self._lines = recorder, lines

    @property
    def text(self) -> str:
        return b"".join(self._lines).decode()


class Recordings:
    """The recordings of one process."""

    def __init__(self, clock: Clock, limits: Limits) -> None:
        self._clock, self._limits = clock, limits
        self._files: dict[tuple[str, str], _File | None] = {}  # by path and server; None: not writable
        self._in_memory: WeakSet[MemoryRecording] = WeakSet()

    def in_file(self, spec: BackendSpec) -> Recorder | None:
        """Return the recorder that a server's configuration specifies, or None. An unwritable file is no error."""
        if spec.record is None:
            return None
        key = spec.record, spec.name
        if key not in self._files:
            self._files[key] = self._open(spec, spec.record)
        file = self._files[key]
        return None if file is None or not file.recorder.is_open else file.recorder

    def _open(self, spec: BackendSpec, path: str) -> "_File | None":
        try:
            descriptor, size = open_recording(Path(path))
        except OSError as error:
            log.warning("not_recorded", server=spec.name, file=path, error=error.strerror or str(error))
            return None
        most, has_failed = self._limits.recording_bytes, Event()
        recorder: Recorder | None = None

        def fail(error: OSError) -> None:
            """Handle a write error. It runs in the writer's thread, perhaps before the recorder exists."""
            log.warning("not_recorded", server=spec.name, file=path, error=error.strerror or str(error))
            has_failed.set()
            if recorder is not None:
                recorder.stop()

        writer = LogWriter(descriptor, dropped_line=_dropped_entry, on_failure=fail, most_bytes=most, gives_up=True)
        recorder = self._recorder(spec, lambda line: writer.put(line[:-1].decode()), most - size)
        if has_failed.is_set():
            recorder.stop()
        return _File(writer, recorder, descriptor)

    def in_memory(self, spec: BackendSpec) -> "MemoryRecording":
        """Raises: EmceepeeError: there are too many recordings."""
        most = self._limits.recordings_in_all
        if len(self._in_memory) >= most:
            words = (
                f"{most} recordings are already stored in memory, which is the limit. Save and end one of them first."
            )
            raise EmceepeeError(words, code=ErrorCode.LIMIT_EXCEEDED)
        lines: list[bytes] = []
        recording = MemoryRecording(self._recorder(spec, lines.append, self._limits.recording_bytes), lines)
        self._in_memory.add(recording)
        return recording

    def _recorder(self, spec: BackendSpec, put: Put, most_bytes: int) -> Recorder:
        return Recorder(put, self._clock, server=spec.name, target=_place(spec), most_bytes=most_bytes)

    async def close(self) -> None:
        for file in self._files.values():
            if file is not None:
                file.recorder.stop()
                await to_thread(file.writer.flush, within=FLUSH_SECONDS)
                fcntl.flock(file.descriptor, fcntl.LOCK_UN)  # the next recorder need not wait for the thread
                file.writer.close()
        self._files.clear()


def _place(spec: BackendSpec) -> str:
    """Return the server's address without its path, because some servers have their token there."""
    if not isinstance(spec.target, HttpTarget):
        return spec.target.label
    return f"{urlsplit(spec.target.url).scheme}://{place_of(spec.target.url)}"


def open_recording(path: Path) -> tuple[int, int]:
    """Open a new or existing recording for appending, private to its owner. Return its descriptor and size.

    Raises:
        OSError: it cannot be written, it is not a recording, or another process is recording to it.
    """
    if path.exists() and not path.is_symlink():
        if not path.is_file():  # reading a pipe could block forever
            raise OSError(NO_RECORDING)
        with path.open("rb") as file:
            if not _begins_as_recording(file.read(LONGEST_HEADER)):
                raise OSError(NO_RECORDING)
    descriptor = open_log_file(path)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)  # otherwise the lines of two processes would mix
    except OSError:
        os.close(descriptor)
        raise OSError(IN_USE) from None
    try:
        _end_last_line(path, descriptor)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, os.fstat(descriptor).st_size


def _end_last_line(path: Path, descriptor: int) -> None:
    """Complete a line that was cut off by a full disk or a kill, so that it does not run into the next one."""
    if os.fstat(descriptor).st_size:
        with path.open("rb") as file:
            file.seek(-1, os.SEEK_END)
            if file.read() != b"\n":
                os.write(descriptor, b"\n")


def _begins_as_recording(data: bytes) -> bool:
    try:
        return not data or is_header(decode(data.partition(b"\n")[0]))
    except ValueError:
        return False


def _dropped_entry(count: int) -> str:
    return encode_text({"type": str(EntryKind.CUT), "reason": f"{count} lines could not be written"})
