"""Writes state with every kind of record, for tests of later versions: a file, and what stands in a Redis.

    python -m support.programs.write_golden_state FOLDER

Never overwrite a committed file: users of that version have this state.
"""

import asyncio
import base64
import json
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from emceepee.backends.backend_task import BackendTask
from emceepee.backends.oauth.login_codec import write_tokens
from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.tokens import TokenSet
from emceepee.backends.spec import ServerEntry
from emceepee.clock import SystemClock
from emceepee.codemode.kept_script import KeptScript, PendingCall
from emceepee.server.http.connection_records import (
    ConnectionRecord,
    MessageRecord,
    message_record_id,
    write_connection,
    write_message,
)
from emceepee.sessions import records
from emceepee.sessions.records import ONLY, RecordKind, ServerRecord, SessionProfile, event_record_id
from emceepee.sessions.results.stored_results import CHUNK_BYTES
from emceepee.sessions.secret_records import TOKENS, ServerKey
from emceepee.sessions.servers.stored_configuration import write_configuration
from emceepee.sessions.stored_task import StoredTask
from emceepee.state.events import Event, EventType, OutboxMark
from emceepee.state.question import ElicitationStatus, Question, QuestionKind
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.state.stored_result import StoredResult
from emceepee.state.task import Task
from emceepee.state.timer import Timer
from emceepee.store.redis.connection.redis_address import parse_address
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Commit, Lease, RecordKey, Sealer, SessionHead, Store, StoredLogin
from support.system.redis_server import RedisServer, redis_server

WRITTEN = datetime(2026, 11, 16, 12, 0, 0, 123456, tzinfo=UTC)
LATER = datetime(2999, 1, 1, tzinfo=UTC)
SESSION_ID, CONNECTION_ID = "01KDVDNA00626ZT0Q2R2JPCFNN", "01KDVDNA00626ZT0Q2R2JPCFNP"
NAME = SessionKey("local", KeyKind.NAME, "desk")
CONNECTION = SessionKey("local", KeyKind.CONNECTION, CONNECTION_ID)
HANDSHAKE = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "tests", "version": "1"}}


STATE_KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()  # of the Redis
PREFIX = "golden"
SCRIPT_ID, BACKEND_TASK_ID = "01KDVDNA00626ZT0Q2R2JPCFT3", "01KDVDNA00626ZT0Q2R2JPCFT4"
WORKING_ID, CALL_ID = "01KDVDNA00626ZT0Q2R2JPCFT2", "01KDVDNA00626ZT0Q2R2JPCFT5"
HANDLE, TEXT = "01KDVDNA00626ZT0Q2R2JPCFR1", b"nugget " * 10_000
CHUNKS = [TEXT[at : at + CHUNK_BYTES] for at in range(0, len(TEXT), CHUNK_BYTES)]
LOGIN = StoredLogin(b"d" * 32, "local", LATER)
TOKENS_OF = ServerKey("local", "http", "https://example.org/mcp")
TOKEN_SET = TokenSet(
    issuer="https://login.example.org",
    resource="https://example.org/mcp",
    client=OAuthClient(client_id="golden"),
    token_endpoint="https://login.example.org/token",
    access_token="access",
    issued_at=WRITTEN,
    expires_at=LATER,
    refresh_token="refresh",
)
SCRIPT = KeptScript(
    version="0",
    snapshot=b"snapshot",
    source="await mcp.sleep(1)",
    pending=[PendingCall(number=1, function="sleep", arguments={}, call_id="01KDVDNA00626ZT0Q2R2JPCFC1")],
    log="half way",
    calls=1,
    computed=0.5,
    began_at=WRITTEN.isoformat(),
)
BACKEND_TASK = StoredTask(
    task=BackendTask(task_id="there", is_modern=True, token="t1"),
    url="https://example.org/mcp",
    session={"id": "there"},
)


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
    working = replace(task, task_id=WORKING_ID)
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


def newer_records(sealer: Sealer) -> dict[RecordKey, bytes]:
    """The kinds that the first file does not have."""
    (working,) = (data for key, data in golden_records().items() if key.record_id == WORKING_ID)
    task = records.read_task(working)
    script = replace(task, task_id=SCRIPT_ID, server="emceepee", tool="codemode_execute", arguments={})
    result = StoredResult(
        handle=HANDLE, size=len(TEXT), chunks=len(CHUNKS), is_json=False, is_stored=True, created_at=WRITTEN
    )

    def seal(kind: RecordKind, call_id: str, data: bytes) -> bytes:
        return sealer.seal(data, place=(kind, "local", SESSION_ID, call_id))

    return {
        RecordKey(RecordKind.CALL, CALL_ID): records.write_task(replace(task, task_id=CALL_ID)),
        RecordKey(RecordKind.TASK, SCRIPT_ID): records.write_task(script),
        RecordKey(RecordKind.SCRIPT, SCRIPT_ID): seal(RecordKind.SCRIPT, SCRIPT_ID, SCRIPT.to_bytes()),
        RecordKey(RecordKind.TASK, BACKEND_TASK_ID): records.write_task(replace(task, task_id=BACKEND_TASK_ID)),
        RecordKey(RecordKind.BACKEND_TASK, BACKEND_TASK_ID): seal(
            RecordKind.BACKEND_TASK, BACKEND_TASK_ID, BACKEND_TASK.to_bytes()
        ),
        RecordKey(RecordKind.RESULT, HANDLE): records.write_result(result),
    }


async def fill(store: Store) -> None:
    head = SessionHead(
        session_id=SESSION_ID,
        principal="local",
        keys=frozenset({NAME, CONNECTION}),
        expires_at=LATER,
        due_at=LATER,
    )
    sealer = await store.sealer()
    assert sealer is not None
    lease = await store.create(Commit(head=head, lease=Lease(0, 0), puts={**golden_records(), **newer_records(sealer)}))
    assert lease is not None
    await store.put_chunks(SESSION_ID, HANDLE, 0, CHUNKS)
    for entry in (
        ServerEntry(name="http", url="https://example.org/mcp", headers={"authorization": "Bearer golden"}),
        ServerEntry(name="program", command="true", args=["--really"], env={"TOKEN": "golden"}, timeout_ms=1500),
    ):
        await store.add_server(write_configuration("local", entry.spec()))
    await store.add_login(LOGIN)
    await store.put_secret("local", TOKENS_OF.record(TOKENS), write_tokens(TOKEN_SET), revision=0)
    await store.release({SESSION_ID: lease})
    await store.close()


async def write_golden(directory: Path) -> None:
    await fill(await SqliteStore.open(directory / "state.db", SystemClock()))
    with redis_server() as server:
        address = parse_address(server.url(PREFIX))
        await fill(await RedisStore.open(address, SystemClock(), key=STATE_KEY))
        (directory / "redis.json").write_text(json.dumps(dump(server), indent=1) + "\n")


READ = {"string": ("GET",), "hash": ("HGETALL",), "set": ("SMEMBERS",), "list": ("LRANGE", "0", "-1")}
READ["zset"] = ("ZRANGE", "0", "-1", "WITHSCORES")
WRITE = {"string": "SET", "hash": "HSET", "set": "SADD", "list": "RPUSH", "zset": "ZADD"}


def dump(server: RedisServer) -> list[list[str]]:
    """The commands that make what is there, in base64. Keys that soon lapse are of processes, and not of the state."""
    commands = []
    for key in sorted(_words(server.command("KEYS", "*"))):
        lapses_in = int(server.command("PTTL", key)[1:])  # milliseconds; -1: never
        if 0 <= lapses_in < timedelta(days=365) / timedelta(milliseconds=1):
            continue
        kind = server.command("TYPE", key).decode()[1:].strip()
        command, *range_ = READ[kind]
        values = _words(server.command(command, key, *range_))
        pairs = zip(values[::2], values[1::2], strict=kind in ("hash", "zset"))
        if kind == "zset":  # written with the score first
            values = [word for member, score in pairs for word in (score, member)]
        commands.append([_text(word) for word in (WRITE[kind].encode(), key, *values)])
    return commands


def load(server: RedisServer, commands: list[list[str]]) -> None:
    for command in commands:
        reply = server.command(*(base64.b64decode(word) for word in command))
        assert not reply.startswith(b"-"), reply


def _text(word: bytes) -> str:
    return base64.b64encode(word).decode()


def _words(reply: bytes) -> list[bytes]:
    """Of a reply that is one string, or a list of them."""
    count, rest = 1, reply
    if reply.startswith(b"*"):
        first, _, rest = reply.partition(b"\r\n")
        count = int(first[1:])
    words = []
    for _ in range(count):
        first, _, rest = rest.partition(b"\r\n")
        size = int(first[1:])
        words.append(rest[:size])
        rest = rest[size + 2 :]
    return words


if __name__ == "__main__":
    asyncio.run(write_golden(Path(sys.argv[1])))
