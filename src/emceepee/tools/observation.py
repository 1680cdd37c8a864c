"""Tools that show what backends said unasked: notifications and logs."""

import asyncio

from pydantic import Field

from emceepee.backends.connection import Connection
from emceepee.clock import iso
from emceepee.errors import EmceepeeError
from emceepee.json_types import JsonObject
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


@tool(title="Take notifications", effect=TAKES, load=found_by("MCP server notifications"))
async def get_notifications(params: FromServer, session: Session) -> JsonObject:
    """Take the notifications that servers sent; each is returned once."""
    rings = [buffers.notifications for buffers in session.buffers_of(params.server)]
    taken = sorted((item for ring in rings for item in ring.take_all()), key=lambda item: item.at)
    dropped = sum(ring.take_dropped() for ring in rings)
    return {"notifications": [_notification(item) for item in taken]} | ({"dropped": dropped} if dropped else {})


@tool(title="Take log lines", effect=TAKES, load=found_by("MCP server logs stderr debug"))
async def get_logs(params: GetLogs, session: Session) -> JsonObject:
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
async def set_log_level(params: SetLogLevel, session: Session) -> JsonObject:
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


def _notification(item: BackendNotification) -> JsonObject:
    shown: JsonObject = {"server": item.server, "method": item.method, "timestamp": iso(item.at)}
    return shown if item.params is None else shown | {"params": item.params}


def _log_line(line: LogLine) -> JsonObject:
    shown: JsonObject = {
        "server": line.server,
        "timestamp": iso(line.at),
        "level": str(line.level),
        "source": str(line.source),
    }
    if line.logger is not None:
        shown["logger"] = line.logger
    return shown | {"data": line.data}
