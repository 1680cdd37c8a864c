"""Writes a state file with every kind of record, for tests of later versions.

A file that was committed once is never written again: it is what a user of that version has on the disk.
"""

import asyncio
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from emceepee.backends.spec import ServerEntry
from emceepee.clock import SystemClock
from emceepee.server.http.connection_records import (
    ConnectionRecord,
    MessageRecord,
    message_record_id,
    write_connection,
    write_message,
)
from emceepee.sessions import records
from emceepee.sessions.records import ONLY, RecordKind, ServerRecord, SessionProfile, event_record_id
from emceepee.sessions.server_settings import write_configuration
from emceepee.state.events import Event, EventType, OutboxMark
from emceepee.state.question import ElicitationStatus, Question, QuestionKind
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.state.task import Task
from emceepee.state.timer import Timer
from emceepee.store.sqlite import SqliteStore
from emceepee.store.store import Commit, Lease, RecordKey, SessionHead, StoredLogin

WRITTEN = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)
LATER = datetime(2999, 1, 1, tzinfo=UTC)
SESSION_ID, CONNECTION_ID = "01KDVDNA00626ZT0Q2R2JPCFNN", "01KDVDNA00626ZT0Q2R2JPCFNP"
NAME = SessionKey("local", KeyKind.NAME, "desk")
CONNECTION = SessionKey("local", KeyKind.CONNECTION, CONNECTION_ID)
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}


def golden_records() -> dict[RecordKey, bytes]:
    task = Task(
        task_id="01KDVDNA00626ZT0Q2R2JPCFT1",
        server="one",
        tool="dig",
        method="tools/call",
        arguments={"depth": 3},
        created_at=WRITTEN,
        updated_at=WRITTEN,
        ttl=timedelta(minutes=10),
        retention=timedelta(days=400_000),
    )
    done = task.completed({"content": [{"type": "text", "text": "gold"}]}, WRITTEN)
    timer = Timer(
        timer_id="01KDVDNA00626ZT0Q2R2JPCFM1",
        message="tea",
        duration=timedelta(minutes=5),
        repeats=False,
        created_at=WRITTEN,
        expires_at=LATER,
        retention=timedelta(minutes=5),
    )
    question = Question(
        request_id="01KDVDNA00626ZT0Q2R2JPCFQ1",
        server="one",
        kind=QuestionKind.ELICITATION,
        params={"message": "Name?"},
        created_at=WRITTEN,
        expires_at=LATER,
        status=ElicitationStatus.PENDING,
    )
    events = [
        Event(
            event_id=f"01KDVDNA00626ZT0Q2R2JPCFE{number}",
            type=EventType.NOTIFICATION,
            server="one",
            created_at=WRITTEN,
            data={"method": "notifications/x", "number": number},
            size=520,
        )
        for number in range(3)
    ]
    message = MessageRecord(
        number=1,
        event_id="01KDVDNA00626ZT0Q2R2JPCFS1",
        stream="request 1",
        data=b"",
        is_final=False,
        written_at=WRITTEN,
        request_id="seven",
    )
    connection = ConnectionRecord(handshake=HANDSHAKE, is_initialized=True, follows_events=True, pushed=0)
    working = replace(task, task_id="01KDVDNA00626ZT0Q2R2JPCFT2")
    return {
        RecordKey(RecordKind.SESSION, ONLY): records.write_profile(
            SessionProfile(secret="5ec" * 8, opened_at=WRITTEN, label="tests 1", was_used=True)
        ),
        **{
            RecordKey(RecordKind.EVENT, event_record_id(7 + number)): records.write_event(event)
            for number, event in enumerate(events)
        },
        RecordKey(RecordKind.DELIVERY, ONLY): records.write_delivery(OutboxMark(9, (8,), 2)),
        RecordKey(RecordKind.TASK, done.task_id): records.write_task(done),
        RecordKey(RecordKind.TASK, working.task_id): records.write_task(working),
        RecordKey(RecordKind.TIMER, timer.timer_id): records.write_timer(timer),
        RecordKey(RecordKind.QUESTION, question.request_id): records.write_question(question),
        RecordKey(RecordKind.SERVER, "one"): records.write_server(
            ServerRecord(log_level="debug", subscriptions=("file:///a",))
        ),
        RecordKey(RecordKind.CONNECTION, CONNECTION_ID): write_connection(connection),
        RecordKey(RecordKind.MESSAGE, message_record_id(CONNECTION_ID, 1)): write_message(message),
    }


async def write_golden(directory: Path) -> None:
    store = await SqliteStore.open(directory / "state.db", SystemClock())
    head = SessionHead(
        session_id=SESSION_ID,
        principal="local",
        keys=frozenset({NAME, CONNECTION}),
        expires_at=LATER,
        due_at=LATER,
    )
    await store.commit([Commit(head=head, lease=Lease(0, 0), puts=golden_records())])
    for entry in (
        ServerEntry(name="http", url="https://example.org/mcp", headers={"authorization": "Bearer golden"}),
        ServerEntry(name="program", command="true", args=["--really"], env={"TOKEN": "golden"}, timeout_ms=1500),
    ):
        await store.add_server(write_configuration("local", entry.spec()))
    await store.add_login(StoredLogin(b"d" * 32, "local", LATER))
    await store.close()


if __name__ == "__main__":
    asyncio.run(write_golden(Path(sys.argv[1])))
