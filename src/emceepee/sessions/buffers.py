"""What a backend said and nobody has read yet: notifications and log lines, bounded a server."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from emceepee.codec import encode
from emceepee.json_types import JsonObject, JsonValue
from emceepee.state.limits import Limits
from emceepee.state.ring import Ring, Tail


class LogLevel(StrEnum):
    """The protocol's levels, mildest first."""

    DEBUG = "debug"
    INFO = "info"
    NOTICE = "notice"
    WARNING = "warning"
    ERROR = "error"
    CRITICAL = "critical"
    ALERT = "alert"
    EMERGENCY = "emergency"

    @property
    def severity(self) -> int:
        return list(LogLevel).index(self)


class LogSource(StrEnum):
    """Where a log line came from."""

    PROTOCOL = "protocol"
    STDERR = "stderr"
    STDOUT = "stdout"


@dataclass(frozen=True, slots=True, kw_only=True)
class Notification:
    """A notification of a backend, as it came."""

    server: str
    method: str
    at: datetime
    params: JsonObject | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogLine:
    """One line of a backend's log, whatever its source. Two lines are never the same one."""

    server: str
    at: datetime
    level: LogLevel
    source: LogSource
    data: JsonValue
    logger: str | None = None


@dataclass(slots=True)
class ServerBuffers:
    """One backend's unread notifications and log lines."""

    server: str
    limits: Limits
    changed: Callable[[], None] = lambda: None
    notifications: Ring[Notification] = field(init=False)
    logs: Ring[LogLine] = field(init=False)
    tail: Tail[LogLine] = field(init=False)  # the same lines, for those who only look

    def __post_init__(self) -> None:
        self.notifications = Ring(self.limits.notifications_per_server)
        self.logs = Ring(self.limits.log_lines_per_server)
        self.tail = Tail(self.limits.log_lines_per_server)

    def notified(self, method: str, params: JsonObject, at: datetime) -> None:
        kept = cut(params, self.limits.buffered_item_bytes) if params else None
        self.notifications.append(Notification(server=self.server, method=method, at=at, params=kept))

    def logged(self, params: JsonObject, at: datetime) -> None:
        """A `notifications/message`. A level nobody knows counts as info: the line matters more than its label."""
        level, logger = params.get("level"), params.get("logger")
        self._keep(
            LogLine(
                server=self.server,
                at=at,
                level=LogLevel(level) if level in list(LogLevel) else LogLevel.INFO,
                source=LogSource.PROTOCOL,
                logger=logger if isinstance(logger, str) else None,
                data=cut(params.get("data"), self.limits.buffered_item_bytes),
            )
        )

    def said(self, line: str, source: LogSource, at: datetime) -> None:
        data = cut(line, self.limits.buffered_item_bytes)
        self._keep(LogLine(server=self.server, at=at, level=LogLevel.INFO, source=source, data=data))

    def _keep(self, line: LogLine) -> None:
        self.logs.append(line)
        self.tail.append(line)
        self.changed()


def read_logs(
    buffers: list[ServerBuffers], wanted: Callable[[LogLine], bool], *, limit: int, clear: bool
) -> tuple[list[LogLine], int]:
    """The newest `limit` lines that are wanted, oldest first, and how many were lost. Clears only what it returns."""
    found = sorted((line for buffer in buffers for line in buffer.logs if wanted(line)), key=lambda line: line.at)
    found = found[-limit:]
    dropped = sum(buffer.logs.take_dropped() for buffer in buffers)
    if clear:
        taken = {id(line) for line in found}
        for buffer in buffers:
            buffer.logs.remove(lambda line: id(line) in taken)
    return found, dropped


def cut(value: JsonValue, limit: int) -> JsonValue:
    """The value, or if it is larger than `limit` its beginning as text, with a mark that says so."""
    if isinstance(value, str) and len(value) * 4 <= limit:
        return value
    text = value.encode("utf-8", "replace") if isinstance(value, str) else encode(value)
    if len(text) <= limit:
        return value
    beginning = text[:limit].decode("utf-8", "ignore")
    mark = f"… (cut: {len(text)} bytes in all)"
    return beginning + mark if isinstance(value, str) else {"cut": beginning + mark}
