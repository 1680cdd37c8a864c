"""A start with ten thousand sessions in the store: none is loaded before it is needed."""

import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

from emceepee.clock import SystemClock
from emceepee.guard.caller_identity import LOCAL
from emceepee.sessions import records
from emceepee.sessions.records import ONLY, RecordKind, SessionProfile, event_record_id
from emceepee.state.events import Event, EventType, OutboxMark
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.state.timer import Timer
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Commit, Lease, RecordKey, SessionHead
from support.callers.restartable_process import restartable_process
from support.figures import record_figure
from support.system.processes import memory_of

SESSIONS, AT_ONCE, EVENTS = 10_000, 500, 10
START_SECONDS = 2.0  # what is promised; on a busy machine it may take five times as long
MORE_BYTES = 50 << 20


def stored_session(number: int, now: datetime) -> Commit:
    """One with a timer and some events, as it is after some use."""
    profile = SessionProfile(secret="s" * 43, opened_at=now, label="tests", was_used=True)
    timer = Timer(
        timer_id=f"{number:026d}",
        message="later",
        duration=timedelta(hours=1),
        repeats=False,
        created_at=now,
        expires_at=now + timedelta(hours=1),
        retention=timedelta(minutes=5),
    )
    data = {"method": "notifications/resources/updated", "params": {"uri": "file:///" + "x" * 200}}
    puts = {
        RecordKey(RecordKind.SESSION, ONLY): records.write_profile(profile),
        RecordKey(RecordKind.DELIVERY, ONLY): records.write_delivery(OutboxMark(0, (), 0)),
        RecordKey(RecordKind.TIMER, timer.timer_id): records.write_timer(timer),
    }
    for event in range(EVENTS):
        told = Event(
            event_id=f"{event:026d}", type=EventType.NOTIFICATION, server="one", created_at=now, data=data, size=700
        )
        puts[RecordKey(RecordKind.EVENT, event_record_id(event))] = records.write_event(told)
    head = SessionHead(
        session_id=f"{number:026d}",
        principal=LOCAL,
        keys=frozenset({SessionKey(LOCAL, KeyKind.NAME, f"name {number}")}),
        expires_at=now + timedelta(hours=24),
        due_at=timer.expires_at,
    )
    return Commit(head=head, lease=Lease(0, 0), puts=puts)


async def fill(file: Path) -> None:
    store, now = await SqliteStore.open(file, SystemClock()), datetime.now(UTC)
    for first in range(0, SESSIONS, AT_ONCE):
        await store.commit([stored_session(number, now) for number in range(first, first + AT_ONCE)])
    await store.close()


async def start(state: Path, *messages: str) -> tuple[float, int]:
    """How many seconds until it serves, and how many bytes it takes. One session is asked for its timers."""
    began = time.perf_counter()
    async with restartable_process(state) as endpoint:
        seconds = time.perf_counter() - began
        caller = endpoint.modern(emceepee_session="name 4711")
        timers = (await caller.value("list_timers"))["timers"]
        assert [timer["message"] for timer in timers] == list(messages)
        return seconds, memory_of(endpoint.process.pid)


async def test_ten_thousand_stored_sessions_make_a_start_neither_slow_nor_large(tmp_path: Path) -> None:
    full, empty = tmp_path / "full", tmp_path / "empty"
    await fill(full / "emceepee" / "state.db")
    empty_seconds, empty_bytes = await start(empty)
    seconds, taken = await start(full, "later")
    size = (full / "emceepee" / "state.db").stat().st_size
    record_figure(
        f"a start takes {seconds:.2f} s with {SESSIONS} stored sessions ({size / 1e6:.0f} MB), {empty_seconds:.2f} s "
        f"without; it takes {(taken - empty_bytes) / 1e6:+.1f} MB more"
    )
    assert seconds < 5 * START_SECONDS
    assert taken - empty_bytes < MORE_BYTES
