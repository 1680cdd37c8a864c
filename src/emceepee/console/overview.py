"""Overview of the last hour: one sample every few seconds, computed from the journals.

Requests update no counters. A sample uses the journals, which number their requests: the request counts are exact,
except for sessions that ended since the previous sample. Outcomes are known for requests that are still stored.
Samples are taken only for principals who have opened the page, until an hour after their last visit.
"""

import asyncio
import os
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple
from weakref import WeakKeyDictionary

from emceepee.clock import Clock, epoch_milliseconds
from emceepee.console.feed import SessionSource
from emceepee.lifecycle import TaskOwner
from emceepee.sessions.session import Session
from emceepee.telemetry.journal import Journal
from emceepee.telemetry.spans import Span, SpanStatus
from emceepee.wire.json_types import JsonObject

SAMPLE_SECONDS = 10.0
SAMPLE = timedelta(seconds=SAMPLE_SECONDS)
KEPT_SAMPLES = 360  # an hour
KEPT_SECONDS = 3600.0  # after the last visit
MOST_PRINCIPALS = 50  # with samples; beyond that, the least recent visitor's samples are dropped
STATM = Path("/proc/self/statm")
RESIDENT_FIELD = 1  # in pages
Memory = Callable[[], int | None]


class Sample(NamedTuple):
    """The events in the interval before `at`, and the state at its end; None means unknown."""

    at: datetime
    requests: int
    errors: int
    slowest: float | None  # seconds, of the requests that ended
    waiting: int | None
    """Open questions, including logins."""
    memory: int | None


@dataclass(slots=True)
class _Tally:
    """The requests of one interval: how many began, and the outcomes of the requests that ended."""

    begun: int = 0
    errors: int = 0
    slowest: float | None = None

    def end(self, span: Span) -> None:
        seconds = span.ended or 0.0
        self.errors += span.status is SpanStatus.ERROR
        self.slowest = seconds if self.slowest is None else max(self.slowest, seconds)


class SampleHistory:
    """One principal's samples, and the request counts of their sessions at the last sample."""

    def __init__(self, sessions: Iterable[Session], now: datetime) -> None:
        """Reconstruct earlier samples from the stored requests."""
        self.samples: deque[Sample] = deque(maxlen=KEPT_SAMPLES)
        self.looked = 0.0  # time of the last visit
        # The number of begun requests per journal. The session id is no key: a reloaded session has a new journal.
        self._begun: WeakKeyDictionary[Journal, int] = WeakKeyDictionary()
        self._at = now
        tallies: defaultdict[int, _Tally] = defaultdict(_Tally)  # by age in samples
        for session in sessions:
            self._begun[session.journal] = session.journal.begun
            for span in session.journal.spans:
                tallies[(now - span.at) // SAMPLE].begun += 1
                if (ended := _end_of(span)) is not None:
                    tallies[(now - ended) // SAMPLE].end(span)
        for ago in range(min(max(tallies, default=-1), KEPT_SAMPLES - 1), -1, -1):
            tally = tallies[ago]
            self.samples.append(Sample(now - SAMPLE * ago, tally.begun, tally.errors, tally.slowest, None, None))

    def take(self, sessions: list[Session], now: datetime, memory: int | None) -> None:
        self.samples.append(self.measure(sessions, now, memory))
        self._at = now
        for session in sessions:
            self._begun[session.journal] = session.journal.begun

    def measure(self, sessions: list[Session], now: datetime, memory: int | None) -> Sample:
        """Return a sample of the time since the last one."""
        tally, waiting = _Tally(), 0
        for session in sessions:
            journal = session.journal
            tally.begun += journal.begun - self._begun.get(journal, 0)
            waiting += len(session.questions.open())
            for span in journal.spans:
                if (ended := _end_of(span)) is not None and self._at < ended <= now:
                    tally.end(span)
        return Sample(now, tally.begun, tally.errors, tally.slowest, waiting, memory)


def _end_of(span: Span) -> datetime | None:
    return None if span.ended is None else span.at + timedelta(seconds=span.ended)


class Overview:
    """The histories of principals who visit the page. A background task takes samples while any history exists."""

    def __init__(self, source: SessionSource, clock: Clock, tasks: TaskOwner, memory: Memory) -> None:
        """`memory` is called in another thread."""
        self._source, self._clock, self._tasks, self._memory = source, clock, tasks, memory
        self._histories: dict[str, SampleHistory] = {}  # the most recently viewed one is last
        self._is_sampling = False

    def __len__(self) -> int:
        return len(self._histories)

    def look(self, principal: str) -> SampleHistory:
        """Record a visit of the principal and start sampling."""
        history = self._histories.pop(principal, None)
        if history is None:
            history = SampleHistory(self._source.sessions_of(principal), self._clock.now())
        self._histories[principal] = history
        history.looked = self._clock.monotonic()
        if len(self._histories) > MOST_PRINCIPALS:
            del self._histories[next(iter(self._histories))]
        if not self._is_sampling:
            self._is_sampling = True
            self._tasks.spawn(self._sample(), name="overview")
        return history

    def show(self, principal: str) -> JsonObject:
        """Return the history with the time since the last sample, so that a visitor need not wait for the next one."""
        history = self.look(principal)
        so_far = history.measure(self._source.sessions_of(principal), self._clock.now(), None)
        return overview_view([*history.samples, so_far])

    async def _sample(self) -> None:
        try:
            while self._histories:
                await self._clock.sleep(SAMPLE_SECONDS)
                memory = await asyncio.to_thread(self._memory)
                self._take_all(memory)
        finally:
            self._is_sampling = False

    def _take_all(self, memory: int | None) -> None:
        now, latest = self._clock.now(), self._clock.monotonic() - KEPT_SECONDS
        for principal, history in list(self._histories.items()):
            if history.looked < latest:
                del self._histories[principal]
            else:
                history.take(self._source.sessions_of(principal), now, memory)


def overview_view(samples: Iterable[Sample]) -> JsonObject:
    return {
        "sampleMs": round(SAMPLE_SECONDS * 1000),
        "samples": [
            {
                "at": epoch_milliseconds(sample.at),
                "requests": sample.requests,
                "errors": sample.errors,
                "slowestMs": None if sample.slowest is None else round(sample.slowest * 1000, 3),
                "waiting": sample.waiting,
                "memory": sample.memory,
            }
            for sample in samples
        ],
    }


def joined_overview(own: JsonObject, others: list[JsonObject]) -> JsonObject:
    """Add the samples of other replicas to the nearest of ours in time. Ours define the time range."""
    samples = [dict(sample) for sample in own["samples"]]
    for document in others:
        for sample in document.get("samples") or ():
            nearest = min(samples, key=lambda ours: abs(ours["at"] - sample["at"]), default=None)
            if nearest is not None and abs(nearest["at"] - sample["at"]) <= own["sampleMs"]:
                _add(nearest, sample)
    return own | {"samples": samples}


def _add(ours: JsonObject, theirs: JsonObject) -> None:
    for key in ("requests", "errors", "waiting", "memory"):
        if theirs[key] is not None:
            ours[key] = (ours[key] or 0) + theirs[key]
    known = [value for value in (ours["slowestMs"], theirs["slowestMs"]) if value is not None]
    ours["slowestMs"] = max(known, default=None)


def resident_bytes() -> int | None:
    """Return the resident size, or None if the system does not report it."""
    try:
        return int(STATM.read_text().split()[RESIDENT_FIELD]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
