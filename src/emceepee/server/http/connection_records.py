"""Stored records of a handshake-era connection, so that its caller need not repeat the handshake after a restart."""

from dataclasses import dataclass
from datetime import datetime

from emceepee.sessions.records import UnreadableRecord, read, write
from emceepee.wire.json_rpc import RequestId
from emceepee.wire.json_types import JsonObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionRecord:
    """`handshake` holds the caller's `initialize` parameters, with the negotiated version."""

    handshake: JsonObject
    is_initialized: bool  # whether the caller sent notifications/initialized
    follows_events: bool  # whether it subscribed to emceepee://events
    pushed: int  # number of the last message that belongs to no request and was read


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageRecord:
    """One message of a stream. The first message of a request's stream has no data and names the request."""

    number: int
    event_id: str
    stream: str
    data: bytes
    is_final: bool
    written_at: datetime
    request_id: RequestId | None = None


def message_record_id(connection_id: str, number: int) -> str:
    return f"{connection_id}.{number:012d}"


def connection_of(record_id: str) -> str:
    """Return the id of the connection that the message belongs to."""
    return record_id.rpartition(".")[0]


def number_of(record_id: str) -> int:
    return int(record_id.rpartition(".")[2])


def write_connection(record: ConnectionRecord) -> bytes:
    return write(
        handshake=record.handshake,
        isInitialized=record.is_initialized,
        followsEvents=record.follows_events,
        pushed=record.pushed,
    )


def read_connection(data: bytes) -> ConnectionRecord:
    """Raises: UnreadableRecord."""
    fields = read(data)
    try:
        return ConnectionRecord(
            handshake=fields["handshake"],
            is_initialized=fields["isInitialized"],
            follows_events=fields["followsEvents"],
            pushed=fields["pushed"],
        )
    except KeyError as error:
        raise UnreadableRecord(f"it has no {error}") from None


def write_message(record: MessageRecord) -> bytes:
    return write(
        number=record.number,
        id=record.event_id,
        stream=record.stream,
        data=record.data.decode(),
        isFinal=record.is_final,
        writtenAt=record.written_at.isoformat(),
        request=record.request_id,
    )


def read_message(data: bytes) -> MessageRecord:
    """Raises: UnreadableRecord."""
    fields = read(data)
    try:
        return MessageRecord(
            number=fields["number"],
            event_id=fields["id"],
            stream=fields["stream"],
            data=fields["data"].encode(),
            is_final=fields["isFinal"],
            written_at=datetime.fromisoformat(fields["writtenAt"]),
            request_id=fields["request"],
        )
    except (KeyError, ValueError) as error:
        raise UnreadableRecord(f"{type(error).__name__}: {error}") from None
