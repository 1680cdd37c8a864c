"""Writes a recording, entry by entry, to an output function."""

from collections.abc import Callable
from itertools import count
from typing import Any

from emceepee import __version__
from emceepee.backends.recording.entries import EntryKind, header
from emceepee.clock import Clock, iso
from emceepee.telemetry.logs import EventLog
from emceepee.wire.codec import encode

log = EventLog("backends")
Put = Callable[[bytes], None]
ROOM_FOR_LAST = 200  # bytes, for the entry that explains the end
FULL = "it has reached its largest size (the limit recording_bytes)"


class Recorder:
    """One recording of one server. At its maximum size it ends, and later entries are dropped."""

    def __init__(self, put: Put, clock: Clock, *, server: str, target: str, most_bytes: int) -> None:
        self._put, self._clock, self._server, self._left = put, clock, server, most_bytes
        self._began = clock.monotonic()
        self.numbers, self.questions = count(1), count(1)  # of requests in each direction, on all its links
        self.is_open = True
        self._add(header(server, target, iso(clock.now()), f"emceepee {__version__}"))

    def write(self, kind: EntryKind, facts: Callable[[], dict[str, Any]] = dict) -> None:
        """Write an entry. `facts` is called only while the recording is open: masking a large result takes time."""
        if self.is_open:
            self._add({"at": round(self._clock.monotonic() - self._began, 4), "type": str(kind), **facts()})

    def stop(self) -> None:
        """Stop recording. A link that continues holds this recorder, but must not hold the written data."""
        self.is_open, self._put = False, _lose

    def _add(self, entry: dict[str, Any]) -> None:
        line = encode(entry) + b"\n"
        if len(line) + ROOM_FOR_LAST > self._left:
            self.is_open = False
            log.warning("recording_ended", server=self._server, reason=FULL)
            line = encode({"type": str(EntryKind.CUT), "reason": FULL}) + b"\n"
            if len(line) > self._left:
                return
        self._left -= len(line)
        self._put(line)


def _lose(line: bytes) -> None:
    """Drop a line after the recording has stopped."""
