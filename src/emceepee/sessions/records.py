"""The stored records of a session: their kinds and formats.

Every record starts with the version of its format. A missing field that was added later gets a default. A change of
meaning gets a new version, and the old one stays readable.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from emceepee.state.events import Event, EventType, OutboxMark
from emceepee.state.question import Question, QuestionKind
from emceepee.state.stored_result import StoredResult
from emceepee.state.task import Task, TaskStatus
from emceepee.state.timer import Timer, TimerStatus
from emceepee.wire.codec import decode, encode

VERSION = 1
ONLY = ""  # the id of the only record of a kind


class RecordKind(StrEnum):
    """The kinds of records that make up a stored session."""

    SESSION = "session"
    """Data about the caller. A session has one such record."""
    EVENT = "event"
    """An event. The id is its number in the outbox."""
    DELIVERY = "delivery"
    """The position up to which events were delivered. A session has one such record."""
    CALL = "call"
    """A call in flight that may become a task. After a crash, this record serves to report the call's end."""
    TASK = "task"
    """A task, with its result once it has ended."""
    BACKEND_TASK = "backend_task"
    """The server's own task for a call. The id is that of emceepee's task or of the call. Encrypted."""
    SCRIPT = "script"
    """A waiting script of code mode, with its snapshot. The id is that of its task or of the call. Encrypted."""
    TIMER = "timer"
    """A timer, active or finished."""
    RESULT = "result"
    """A large result. The id is its handle. Its text is stored separately, in chunks."""
    QUESTION = "question"
    """An open question, without its answer."""
    SERVER = "server"
    """Settings for all future links to a server. The id is the server's name."""
    CONNECTION = "connection"
    """The handshake of a caller's connection. The id is its Mcp-Session-Id."""
    MESSAGE = "message"
    """A message on a resumable stream. The id consists of the connection and the message's number."""


class UnreadableRecord(Exception):
    """The record has a newer version, or is damaged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionProfile:
    """General facts about a session, apart from its history."""

    secret: str  # key for the ids that identify the caller to backends
    opened_at: datetime
    label: str | None = None
    transport: str = "http"
    connects_on_use: bool = False
    is_tab: bool = False
    was_used: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """A caller's settings for a server, which apply to each new link."""

    log_level: str | None = None
    subscriptions: tuple[str, ...] = ()


def write(**fields: object) -> bytes:
    return encode({"version": VERSION, **fields})


def read(data: bytes) -> dict[str, Any]:
    """Raises: UnreadableRecord."""
    try:
        fields = decode(data)
    except ValueError as error:
        raise UnreadableRecord(f"not JSON: {error}") from None
    if not isinstance(fields, dict) or fields.get("version") != VERSION:
        version = fields.get("version") if isinstance(fields, dict) else None
        raise UnreadableRecord(f"its version is {version!r}, and this emceepee reads {VERSION}")
    return fields


def write_profile(profile: SessionProfile) -> bytes:
    return write(
        secret=profile.secret,
        openedAt=profile.opened_at.isoformat(),
        label=profile.label,
        transport=profile.transport,
        connectsOnUse=profile.connects_on_use,
        isTab=profile.is_tab,
        wasUsed=profile.was_used,
    )


def read_profile(data: bytes) -> SessionProfile:
    fields = read(data)
    return SessionProfile(
        secret=fields["secret"],
        opened_at=_moment(fields, "openedAt"),
        label=fields.get("label"),
        transport=fields["transport"],
        connects_on_use=fields["connectsOnUse"],
        is_tab=fields["isTab"],
        was_used=fields["wasUsed"],
    )


def event_record_id(number: int) -> str:
    """Return an id that sorts like the number."""
    return f"{number:012d}"


def write_event(event: Event) -> bytes:
    return write(
        id=event.event_id,
        type=event.type,
        server=event.server,
        createdAt=event.created_at.isoformat(),
        data=event.data,
        size=event.size,
    )


def read_event(data: bytes) -> Event:
    fields = read(data)
    return Event(
        event_id=fields["id"],
        type=EventType(fields["type"]),
        server=fields["server"],
        created_at=_moment(fields, "createdAt"),
        data=fields["data"],
        size=fields["size"],
    )


def write_delivery(mark: OutboxMark) -> bytes:
    return write(cursor=mark.cursor, returned=mark.returned, dropped=mark.dropped)


def read_delivery(data: bytes) -> OutboxMark:
    fields = read(data)
    return OutboxMark(fields["cursor"], tuple(fields["returned"]), fields["dropped"])


def write_task(task: Task) -> bytes:
    return write(
        id=task.task_id,
        server=task.server,
        tool=task.tool,
        method=task.method,
        arguments=task.arguments,
        createdAt=task.created_at.isoformat(),
        updatedAt=task.updated_at.isoformat(),
        ttlSeconds=task.ttl.total_seconds(),
        retentionSeconds=task.retention.total_seconds(),
        status=task.status,
        message=task.message,
        progress=task.progress,
        result=task.result,
        error=task.error,
    )


def read_task(data: bytes) -> Task:
    fields = read(data)
    return Task(
        task_id=fields["id"],
        server=fields["server"],
        tool=fields["tool"],
        method=fields["method"],
        arguments=fields["arguments"],
        created_at=_moment(fields, "createdAt"),
        updated_at=_moment(fields, "updatedAt"),
        ttl=timedelta(seconds=fields["ttlSeconds"]),
        retention=timedelta(seconds=fields["retentionSeconds"]),
        status=TaskStatus(fields["status"]),
        message=fields["message"],
        progress=fields["progress"],
        result=fields["result"],
        error=fields["error"],
    )


def write_timer(timer: Timer) -> bytes:
    return write(
        id=timer.timer_id,
        message=timer.message,
        durationSeconds=timer.duration.total_seconds(),
        repeats=timer.repeats,
        createdAt=timer.created_at.isoformat(),
        expiresAt=timer.expires_at.isoformat(),
        retentionSeconds=timer.retention.total_seconds(),
        status=timer.status,
        fireCount=timer.fire_count,
        endedAt=None if timer.ended_at is None else timer.ended_at.isoformat(),
    )


def read_timer(data: bytes) -> Timer:
    fields = read(data)
    return Timer(
        timer_id=fields["id"],
        message=fields["message"],
        duration=timedelta(seconds=fields["durationSeconds"]),
        repeats=fields["repeats"],
        created_at=_moment(fields, "createdAt"),
        expires_at=_moment(fields, "expiresAt"),
        retention=timedelta(seconds=fields["retentionSeconds"]),
        status=TimerStatus(fields["status"]),
        fire_count=fields["fireCount"],
        ended_at=None if fields["endedAt"] is None else _moment(fields, "endedAt"),
    )


def write_result(kept: StoredResult) -> bytes:
    return write(
        handle=kept.handle,
        size=kept.size,
        chunks=kept.chunks,
        isJson=kept.is_json,
        createdAt=kept.created_at.isoformat(),
    )


def read_result(data: bytes) -> StoredResult:
    fields = read(data)
    return StoredResult(
        handle=fields["handle"],
        size=fields["size"],
        chunks=fields["chunks"],
        is_json=fields["isJson"],
        is_stored=True,
        created_at=_moment(fields, "createdAt"),
    )


def write_question(question: Question) -> bytes:
    """Write only the fields needed to report the question as gone: it cannot be answered after a restart."""
    return write(
        id=question.request_id,
        server=question.server,
        kind=question.kind,
        createdAt=question.created_at.isoformat(),
        expiresAt=question.expires_at.isoformat(),
    )


def read_question(data: bytes) -> Question:
    fields = read(data)
    kind = QuestionKind(fields["kind"])
    return Question(
        request_id=fields["id"],
        server=fields["server"],
        kind=kind,
        params={},
        created_at=_moment(fields, "createdAt"),
        expires_at=_moment(fields, "expiresAt"),
        status=kind.first_status,
    )


def write_server(record: ServerRecord) -> bytes:
    return write(logLevel=record.log_level, subscriptions=record.subscriptions)


def read_server(data: bytes) -> ServerRecord:
    fields = read(data)
    return ServerRecord(log_level=fields["logLevel"], subscriptions=tuple(fields["subscriptions"]))


def _moment(fields: Mapping[str, str], key: str) -> datetime:
    return datetime.fromisoformat(fields[key])
