"""Tools that show what backends said unasked: notifications and logs."""

import asyncio
from typing import NotRequired, TypedDict

from pydantic import Field

from emceepee.backends.connection import Connection
from emceepee.clock import iso
from emceepee.errors import EmceepeeError
from emceepee.json_types import JsonObject, JsonValue
from emceepee.sessions.buffers import BackendNotification, LogLevel, LogLine, LogSource, read_logs
from emceepee.sessions.session import Session
from emceepee.tools.declaration import AnyServer, Params, tool
from emceepee.tools.hints import SETS, Effect, found_by

# To take is to clear what is returned, which is not reading; but each line was kept only to be taken once.
TAKES = Effect(destructive=False, open_world=False)


class FromServer(Params):
    """One server, or all."""

    server: AnyServer = None


class GetLogs(FromServer):
    """Which lines."""

    level: LogLevel | None = Field(None, description="Lowest level")
    sources: list[LogSource] | None = Field(None, description="Only these")
    exclude_sources: list[LogSource] | None = Field(None, description="Not these")
    limit: int = Field(100, ge=1, description="Newest lines")
    clear: bool = Field(True, description="false: look only")


class SetLogLevel(FromServer):
    """A level."""

    level: LogLevel = Field(description="Lowest")


class NotificationView(TypedDict):
    """A notification of a server."""

    server: str
    method: str
    timestamp: str
    params: NotRequired[JsonObject]


class TakenNotifications(TypedDict):
    """`dropped` counts those lost to the buffer's limit since it was last asked."""

    notifications: list[NotificationView]
    dropped: NotRequired[int]


class LogLineView(TypedDict):
    """A line that a server logged."""

    server: str
    timestamp: str
    level: str
    source: str
    logger: NotRequired[str]
    data: JsonValue


class TakenLogs(TypedDict):
    """With `clear`, exactly the lines returned are forgotten; `dropped` counts those lost to the buffer's limit since
    it was last asked."""

    logs: list[LogLineView]
    dropped: int


class ObedientServers(TypedDict):
    """The names of those that obeyed."""

    servers: list[str]


@tool(title="Take notifications", effect=TAKES, load=found_by("MCP server notifications"))
async def get_notifications(params: FromServer, session: Session) -> TakenNotifications:
    """Take the notifications that servers sent; each is returned once."""
    rings = [buffers.notifications for buffers in session.buffers_of(params.server)]
    taken = sorted((item for ring in rings for item in ring.take_all()), key=lambda item: item.at)
    dropped = sum(ring.take_dropped() for ring in rings)
    result: TakenNotifications = {"notifications": [_notification(item) for item in taken]}
    if dropped:
        result["dropped"] = dropped
    return result


@tool(title="Take log lines", effect=TAKES, load=found_by("MCP server logs stderr debug"))
async def get_logs(params: GetLogs, session: Session) -> TakenLogs:
    """Take servers' log lines: log messages, stderr, noise on stdout. Lines returned are cleared."""

    def wanted(line: LogLine) -> bool:
        return (
            (params.level is None or line.level.severity >= params.level.severity)
            and (params.sources is None or line.source in params.sources)
            and (params.exclude_sources is None or line.source not in params.exclude_sources)
        )

    lines, dropped = read_logs(session.buffers_of(params.server), wanted, limit=params.limit, clear=params.clear)
    return {"logs": [_log_line(line) for line in lines], "dropped": dropped}


@tool(title="Set log level", effect=SETS, load=found_by("MCP server log verbosity"))
async def set_log_level(params: SetLogLevel, session: Session) -> ObedientServers:
    """Set the lowest level of log messages that servers send."""
    if params.server is not None:
        await session.connection(params.server).set_log_level(params.level)
        return {"servers": [params.server]}
    willing = await asyncio.gather(*(_willing(item, params.level) for item in session.connections if item.is_connected))
    return {"servers": [name for name in willing if name is not None]}


async def _willing(connection: Connection, level: LogLevel) -> str | None:
    try:
        await connection.set_log_level(level)
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
