"""Tools for the servers behind emceepee: add, remove, reconnect, see how they are."""

from typing import Annotated

from pydantic import Field, field_validator

from emceepee.backends.catalog import Kind
from emceepee.backends.spec import OWN_HEADERS, ServerEntry
from emceepee.codec import encode_text
from emceepee.errors import EmceepeeError
from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.sessions.views import question_summary, server_summary, server_view, task_summary
from emceepee.tools.content import text_block
from emceepee.tools.declaration import Caller, NoParams, OwnResult, Params, ServerName, Told, tool
from emceepee.tools.hints import CORE, READS_RECORDS, SETS, Effect, found_by
from emceepee.tools.limited import SERVER_CALL, usual

STDERR_LINES_SHOWN = 20


class AddServer(Params, ServerEntry):
    """A server to add."""

    timeout_ms: Annotated[int | None, SERVER_CALL] = Field(
        None, ge=0, le=usual(SERVER_CALL), description="Default for calls to it"
    )

    @field_validator("headers")
    @classmethod
    def _leave_ours_alone(cls, headers: dict[str, str] | None) -> dict[str, str] | None:
        """What a request means, and to whom, is not for a caller to say: it could mean another host, or session."""
        for name in headers or ():
            if name.strip().lower() in OWN_HEADERS:
                raise ValueError(f"emceepee itself sets {name.strip()}; leave it out")
        return headers


class ByName(Params):
    """One server."""

    name: ServerName


class OneServer(Params):
    """One server, where the argument is called as in the calls to it."""

    server: ServerName


@tool(title="Add a server", effect=SETS, load=CORE)
async def add_server(params: AddServer, session: Session, caller: Caller) -> OwnResult:
    """Connect an MCP server and keep it. Give url (HTTP, SSE) or command (a local program). Secrets here pass through
    the model: better in the configuration file.
    """
    spec = params.spec() if caller.may_add is None else await caller.may_add(params)
    connection = await session.add_server(spec)
    view = server_view(connection)
    try:
        tools = len(await connection.entries(Kind.TOOLS))
    except EmceepeeError as error:
        return _telling({"server": view, "tools": 0, "toolsError": str(error)})
    return _telling({"server": view | {"tools": tools}, "tools": tools})


@tool(title="Remove a server", effect=Effect(), load=found_by("disconnect forget delete MCP server"))
async def remove_server(params: ByName, session: Session, caller: Caller) -> JsonObject:
    """Disconnect a server, end its process and forget it."""
    await session.remove_server(params.name, is_remote=caller.is_remote)
    return {"removed": params.name}


@tool(title="Reconnect a server", effect=Effect(), load=found_by("restart retry broken MCP server"))
async def reconnect_server(params: ByName, session: Session) -> OwnResult:
    """Connect a server anew from any state; calls in flight fail."""
    connection = session.connection(params.name)
    await connection.reconnect()
    return _telling({"server": server_view(connection)})


@tool(title="List servers", effect=READS_RECORDS, load=CORE)
async def list_servers(params: NoParams, session: Session) -> JsonObject:
    """List all servers: name, status, purpose, last error, number of tools."""
    return {"servers": [server_summary(connection) for connection in session.connections]}


@tool(
    title="Show a server's status", effect=READS_RECORDS, load=found_by("MCP server details capabilities stderr error")
)
async def get_server_status(params: OneServer, session: Session) -> JsonObject:
    """One server in full: capabilities, its instructions, process, tasks, questions, stderr."""
    connection = session.connection(params.server)
    waiting = session.questions.open(server=params.server)
    stderr = [line.data for line in session.buffers(params.server).logs if line.source == "stderr"]
    return server_view(connection) | {
        "workingTasks": [task_summary(task) for task in session.tasks.working(params.server)],
        "pendingRequests": [question_summary(question) for question in waiting],
        "stderrTail": stderr[-STDERR_LINES_SHOWN:],
    }


def _telling(value: JsonObject) -> OwnResult:
    """A server with its capabilities, so that the event of its connection need not repeat them."""
    return OwnResult([text_block(encode_text(value))], value, Told(server=value["server"]["name"]))
