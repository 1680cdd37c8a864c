"""Unread notifications and log lines of backends, bounded per server and per session."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from emceepee.state.limits import Limits
from emceepee.state.ring import Ring, Tail
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject, JsonValue

LONGEST_LABEL = 1000  # bytes of a method's or logger's name
BYTES_PER_VALUE = 64  # approximate memory of a value besides its text


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
class BackendNotification:
    """A notification of a backend, as received."""

    server: str
    method: str
    at: datetime
    params: JsonObject | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LogLine:
    """One line of a backend's log from any source. Equal lines remain distinct."""

    server: str
    at: datetime
    level: LogLevel
    source: LogSource
    data: JsonValue
    logger: str | None = None
    request: int | None = None  # its request's number in the journal, if the transport identifies it


class BufferBudget:
    """The memory limit for all buffers of a session. Above it, the fullest buffer drops its oldest items."""

    def __init__(self, most_bytes: int, buffers: "Mapping[str, ServerBuffers]") -> None:
        self._most_bytes, self._buffers = most_bytes, buffers

    def enforce(self, grown: "ServerBuffers") -> None:
        """Check the cheap bound first: if no buffer exceeds its share, the total is within the limit."""
        if grown.bytes * len(self._buffers) <= self._most_bytes:
            return
        while sum(buffer.bytes for buffer in self._buffers.values()) > self._most_bytes:
            max(self._buffers.values(), key=lambda buffer: buffer.bytes).drop_oldest()


@dataclass(slots=True)
class ServerBuffers:
    """One backend's unread notifications and log lines."""

    server: str
    limits: Limits
    notify_change: Callable[[], None] = lambda: None
    budget: BufferBudget | None = None
    notifications: Ring[BackendNotification] = field(init=False)
    logs: Ring[LogLine] = field(init=False)
    tail: Tail[LogLine] = field(init=False)  # the same lines, for observers that do not consume them

    def __post_init__(self) -> None:
        half = self.limits.buffered_bytes_per_server // 2
        self.notifications = Ring(self.limits.notifications_per_server, half)
        self.logs = Ring(self.limits.log_lines_per_server, half)
        self.tail = Tail(self.limits.log_lines_per_server, half)

    @property
    def bytes(self) -> int:
        """Return the approximate size of the unread items."""
        return self.notifications.bytes + self.logs.bytes

    def drop_oldest(self) -> None:
        """Drop the oldest item of the kind that uses more memory."""
        if self.notifications.bytes >= self.logs.bytes:
            self.notifications.drop_oldest()
        else:
            self.logs.drop_oldest()

    def add_notification(self, method: str, params: JsonObject, at: datetime) -> None:
        kept, size = measured(params, self.limits.buffered_item_bytes) if params else (None, 0)
        method, _ = measured(method, LONGEST_LABEL)
        item = BackendNotification(server=self.server, method=method, at=at, params=kept)
        self.notifications.append(item, size + len(method))
        self._check_budget()

    def add_log_message(self, params: JsonObject, at: datetime, request: int | None = None) -> None:
        """Add a `notifications/message`. An unknown level counts as info: the line matters more than its label."""
        level, logger = params.get("level"), params.get("logger")
        data, size = measured(params.get("data"), self.limits.buffered_item_bytes)
        self._keep(
            LogLine(
                server=self.server,
                at=at,
                level=LogLevel(level) if level in list(LogLevel) else LogLevel.INFO,
                source=LogSource.PROTOCOL,
                logger=cut(logger, LONGEST_LABEL) if isinstance(logger, str) else None,
                data=data,
                request=request,
            ),
            size,
        )

    def add_output(self, line: str, source: LogSource, at: datetime) -> None:
        data, size = measured(line, self.limits.buffered_item_bytes)
        self._keep(LogLine(server=self.server, at=at, level=LogLevel.INFO, source=source, data=data), size)

    def _keep(self, line: LogLine, size: int) -> None:
        self.logs.append(line, size)
        self.tail.append(line, size)
        self._check_budget()
        self.notify_change()

    def _check_budget(self) -> None:
        if self.budget is not None:
            self.budget.enforce(self)


def read_logs(
    buffers: list[ServerBuffers], matches: Callable[[LogLine], bool], *, limit: int, clear: bool
) -> tuple[list[LogLine], int]:
    """Return the newest `limit` matching lines, oldest first, and the number lost. `clear` removes those lines."""
    found = sorted((line for buffer in buffers for line in buffer.logs if matches(line)), key=lambda line: line.at)
    found = found[-limit:]
    dropped = sum(buffer.logs.take_dropped() for buffer in buffers)
    if clear:
        clear_logs(buffers, found)
    return found, dropped


def clear_logs(buffers: list[ServerBuffers], lines: list[LogLine]) -> None:
    """Remove these lines, and no others."""
    unwanted = {id(line) for line in lines}
    for buffer in buffers:
        buffer.logs.remove(lambda line: id(line) in unwanted)


def cut(value: JsonValue, limit: int) -> JsonValue:
    """Return the value. If it is larger than `limit`, return its beginning as text with a mark."""
    return measured(value, limit)[0]


def measured(value: JsonValue, limit: int) -> tuple[JsonValue, int]:
    """Return the value, cut like `cut`, and the approximate bytes of memory that it uses."""
    if isinstance(value, str) and len(value) * 4 <= limit:
        return value, len(value)
    text = value.encode("utf-8", "replace") if isinstance(value, str) else encode(value)
    if len(text) <= limit:
        return value, len(text) if isinstance(value, str) else len(text) + text.count(b",") * BYTES_PER_VALUE
    beginning = text[:limit].decode("utf-8", "ignore")
    mark = f"… (cut: {len(text)} bytes in all)"
    return beginning + mark if isinstance(value, str) else {"cut": beginning + mark}, limit
