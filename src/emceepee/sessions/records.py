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
ONLY = ""  # the id of a record that is the only one of its kind


class RecordKind(StrEnum):
    """The kinds of records that make up a stored session."""

    SESSION = "session"
    """The data about its caller. The only one of its kind."""
    EVENT = "event"
    """By its number in the outbox."""
    DELIVERY = "delivery"
    """How far events were delivered. The only one of its kind."""
    CALL = "call"
    """A call in flight that may become a task: the record announces its end to the caller after a crash."""
    TASK = "task"
    """With its result, once it has ended."""
    BACKEND_TASK = "backend_task"
    """By the id of our task, or of the call: the task as which its server runs it. Encrypted."""
    SCRIPT = "script"
    """By the id of its task, or of the call: a script of code mode that waits, with its snapshot. Encrypted."""
    TIMER = "timer"
    """Also one that is done, while it is kept."""
    RESULT = "result"
    """A large one, by its handle; its text is kept apart, in chunks."""
    QUESTION = "question"
    """An open one; never its answer."""
    SERVER = "server"
    """By the server's name: what was asked of it for all links to come."""
    CONNECTION = "connection"
    """By its Mcp-Session-Id: what the handshake of a caller said."""
    MESSAGE = "message"
    """By connection and number: what was written to a stream that can be resumed."""


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
