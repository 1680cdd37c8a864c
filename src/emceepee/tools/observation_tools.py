"""Tools that show unsolicited messages of backends: notifications and logs."""

import asyncio
from typing import NotRequired, TypedDict, cast

from pydantic import Field

from emceepee.backends.connection import Connection
from emceepee.clock import iso
from emceepee.errors import EmceepeeError
from emceepee.sessions.events.buffers import BackendNotification, LogLevel, LogLine, LogSource, clear_logs, read_logs
from emceepee.sessions.session import Session
from emceepee.tools.declaration.declaration import AnyServer, Params, tool
from emceepee.tools.declaration.hints import SETS, ToolEffect, found_by
from emceepee.tools.entry_pages import Detail, Entries, fields, fitting
from emceepee.wire.json_types import JsonObject, JsonValue

# These tools delete the returned lines, so they are not read-only. But lines are stored only to be returned once.
TAKES = ToolEffect(destructive=False, open_world=False)


class FromServer(Params):
    """Parameters: one server, or all."""

    server: AnyServer = None


_LOOKS = "How much of each; full takes them, the others only look"


class GetNotifications(FromServer):
    """Parameters: how many notifications, and how much to show of each."""

    limit: int | None = Field(None, ge=1, description="Oldest ones")
    detail: Detail = Field("full", description=_LOOKS)


class GetLogs(FromServer):
    """Parameters: the selected lines."""

    detail: Detail = Field("full", description=_LOOKS)

    level: LogLevel | None = Field(None, description="Lowest level")
    sources: list[LogSource] | None = Field(None, description="Only these")
    exclude_sources: list[LogSource] | None = Field(None, description="Not these")
    limit: int = Field(100, ge=1, description="Newest lines")
    clear: bool = Field(True, description="false: look only")


class SetLogLevel(FromServer):
    """Parameters: a log level."""

    level: LogLevel = Field(description="Lowest")


class NotificationView(TypedDict):
    """A notification of a server."""

    server: str
    method: str
    timestamp: str
    params: NotRequired[JsonObject]


class TakenNotifications(TypedDict):
    """`dropped` is how many the buffer's limit has removed since the last call. `remaining` wait for the next call."""

    notifications: list[NotificationView]
    dropped: NotRequired[int]
    remaining: NotRequired[int]


class LogLineView(TypedDict):
    """A line that a server logged."""

    server: str
    timestamp: str
    level: str
    source: str
    logger: NotRequired[str]
    data: JsonValue


class TakenLogs(TypedDict):
    """With `clear`, exactly the returned lines are deleted. `dropped` is how many lines the buffer's limit has removed
    since the last call. `remaining` is the number of older lines that were not returned."""

    logs: list[LogLineView]
    dropped: int
    remaining: NotRequired[int]


NOTIFICATIONS = Entries("get_notifications", "notifications", "method", fields("timestamp"))
LOG_LINES = Entries("get_logs", "logs", "timestamp", fields("level", "source", "data"))


class ObedientServers(TypedDict):
    """The names of the servers that accepted the level."""

    servers: list[str]


@tool(
    title="Take notifications",
    effect=TAKES,
    load=found_by("MCP server notifications"),
    unlisted=("detail", "limit"),
)
async def get_notifications(params: GetNotifications, session: Session) -> TakenNotifications:
    """Return the notifications that servers sent, each once."""
    rings = [buffers.notifications for buffers in session.buffers_of(params.server)]
    waiting = sorted((item for ring in rings for item in ring), key=lambda item: item.at)
    views = [NOTIFICATIONS.shown(cast(JsonObject, _notification(item)), params.detail) for item in waiting]
    shown = fitting(views[: params.limit], session.limits.list_reply_bytes)
    if params.detail == "full":
        taken = {id(item) for item in waiting[: len(shown)]}
        for ring in rings:
            ring.remove(lambda item: id(item) in taken)
    result: JsonObject = {"notifications": shown} | _remaining(len(waiting) - len(shown))
    dropped = sum(ring.take_dropped() for ring in rings)
    return cast(TakenNotifications, result | ({"dropped": dropped} if dropped else {}))


@tool(
    title="Take log lines",
    effect=TAKES,
    load=found_by("MCP server logs stderr debug"),
    unlisted=("detail", "exclude_sources"),
)
async def get_logs(params: GetLogs, session: Session) -> TakenLogs:
    """Take servers' log lines: log messages, stderr, noise on stdout. Lines returned are cleared."""

    def wanted(line: LogLine) -> bool:
        return (
            (params.level is None or line.level.severity >= params.level.severity)
            and (params.sources is None or line.source in params.sources)
            and (params.exclude_sources is None or line.source not in params.exclude_sources)
        )

    buffers = session.buffers_of(params.server)
    count = sum(wanted(line) for buffer in buffers for line in buffer.logs)
    lines, dropped = read_logs(buffers, wanted, limit=params.limit, clear=False)
    newest = [LOG_LINES.shown(cast(JsonObject, _log_line(line)), params.detail) for line in lines]
    shown = fitting(newest[::-1], session.limits.list_reply_bytes)[::-1]
    if params.clear and params.detail == "full":
        clear_logs(buffers, lines[len(lines) - len(shown) :])
    return cast(TakenLogs, {"logs": shown, "dropped": dropped} | _remaining(count - len(shown)))


def _remaining(count: int) -> JsonObject:
    return {"remaining": count} if count else {}


@tool(title="Set log level", effect=SETS, load=found_by("MCP server log verbosity"), is_durable=True)
async def set_log_level(params: SetLogLevel, session: Session) -> ObedientServers:
    """Set the lowest level of log messages that servers send."""
    if params.server is not None:
        await session.connection(params.server).settings.set_log_level(params.level)
        return {"servers": [params.server]}
    willing = await asyncio.gather(*(_willing(item, params.level) for item in session.connections if item.is_connected))
    return {"servers": [name for name in willing if name is not None]}


async def _willing(connection: Connection, level: LogLevel) -> str | None:
    try:
        await connection.settings.set_log_level(level)
    except EmceepeeError:
        return None
    return connection.spec.name


def _notification(item: BackendNotification) -> NotificationView:
    view: NotificationView = {"server": item.server, "method": item.method, "timestamp": iso(item.at)}
    if item.params is not None:
        view["params"] = item.params
    return view


def _log_line(line: LogLine) -> LogLineView:
    view: LogLineView = {
        "server": line.server,
        "timestamp": iso(line.at),
        "level": str(line.level),
        "source": str(line.source),
        "data": line.data,
    }
    if line.logger is not None:
        view["logger"] = line.logger
    return view
