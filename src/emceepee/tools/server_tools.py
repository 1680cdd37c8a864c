"""Tools for the servers behind emceepee: add, remove, and reconnect them, and show their status."""

from contextlib import suppress
from dataclasses import replace
from typing import Annotated, NotRequired, TypedDict, TypeVar, cast

from pydantic import Field, field_validator

from emceepee.backends.catalog import ListKind
from emceepee.backends.process.stderr_lines import stderr_excerpt
from emceepee.backends.spec import OWN_HEADERS, Provenance, ServerEntry
from emceepee.errors import EmceepeeError, LoginNeeded
from emceepee.sessions.session import Session
from emceepee.sessions.views import (
    QuestionSummary,
    ServerSummary,
    ServerView,
    TaskSummary,
    disabled_server,
    question_summary,
    server_summary,
    server_view,
    task_summary,
)
from emceepee.state.connection.connection_state import ConnectionStatus
from emceepee.tools.content import text_block
from emceepee.tools.declaration.argument_limits import LimitedBy
from emceepee.tools.declaration.declaration import Brief, Mentions, OwnResult, Params, ServerName, tool
from emceepee.tools.declaration.hints import CORE, READS_RECORDS, ToolEffect, found_by
from emceepee.tools.entry_pages import PAGING, Detailed, Entries, Rest, fields, page
from emceepee.tools.request_context import RequestContext
from emceepee.tools.server_tags import TAG, with_tag
from emceepee.wire.codec import encode_text
from emceepee.wire.json_rpc import client_label
from emceepee.wire.json_types import JsonObject

STDERR_LINES_SHOWN = 20
SERVERS = Entries("list_servers", "servers", "name", fields("status", "disabled", "tools", "description", "lastError"))
CALL_TIMEOUT = LimitedBy(most="longest_call_seconds", description="Default for calls to it")


class AddServer(Params, ServerEntry):
    """Parameters: a server to add."""

    timeout_ms: Annotated[int | None, CALL_TIMEOUT] = CALL_TIMEOUT.field(None)
    replace: bool = Field(False, description="Replace the settings of the added server of that name")

    @field_validator("headers")
    @classmethod
    def _leave_ours_alone(cls, headers: dict[str, str] | None) -> dict[str, str] | None:
        """Reject headers that emceepee sets: with them, a caller could reach another host or session."""
        for name in headers or ():
            if name.strip().lower() in OWN_HEADERS:
                raise ValueError(f"emceepee itself sets {name.strip()}; leave it out")
        return headers


class ListServers(Detailed):
    """Parameters: the selected servers, and how much to show of each."""

    tag: str | None = Field(None, description=TAG)


class ByName(Params):
    """Parameters: one server, by `name`."""

    name: ServerName


class OneServer(Params):
    """Parameters: one server, by `server`, the argument's name in calls to servers."""

    server: ServerName


class FinishAuthorization(OneServer):
    """Parameters: the address of the browser's last page."""

    redirect_url: str = Field(description="Where the browser ended", repr=False)


class ConnectedServer(TypedDict):
    """The server in its current state."""

    server: ServerView


class AddedServer(ConnectedServer):
    """`tools` is the number of its tools. If the connection fails, the error gives the reason, and the server is not
    added. If the server requires a login, it is added with the status `authorizing`, and a person has to open its
    `authorizationUrl`."""

    tools: NotRequired[int]
    toolsError: NotRequired[str]


class RemovedServer(TypedDict):
    """Returned once the server's process and all its child processes have ended."""

    removed: str


class ServerList(Rest):
    """The operator's servers and the added servers. A person has to enable a `disabled` server first. A server with a
    mistake in its configuration entry has the status `error`, and `lastError` names the mistake.
    `configurationProblem`: another mistake in the operator's file; its current entries may not be in use."""

    servers: list[ServerSummary]
    configurationProblem: NotRequired[str]


class ServerStatus(ServerView):
    """`stderrTail` is an excerpt of standard error: the first lines, lines that look like errors, and the last ones."""

    workingTasks: list[TaskSummary]
    pendingRequests: list[QuestionSummary]
    stderrTail: list[str]


S = TypeVar("S", bound=ConnectedServer)


@tool(
    title="Add a server",
    # Destructive, because of an unlisted argument: `replace` overwrites the settings, and calls in flight fail.
    effect=ToolEffect(idempotent=True),
    load=CORE,
    brief=Brief(
        "Connect an MCP server and keep it. Give url or command. Secrets here pass through the model.",
        ("name", "url", "command", "args", "env", "headers"),
    ),
    unlisted=("restartConfig", "sessionHeader", "roots", "mode", "replace"),
    is_durable=True,
)
async def add_server(params: AddServer, session: Session, caller: RequestContext) -> OwnResult[AddedServer]:
    """Connect an MCP server and keep it. Give url (HTTP, SSE) or command (a local program). Secrets here pass through
    the model: better in the configuration file.
    """
    label = client_label(caller.request.params) or session.profile.label
    spec = replace(await caller.admit_server(params), added=Provenance(label, session.clock.now()))
    connection = await (session.servers.replace(spec) if params.replace else session.servers.add(spec))
    view = server_view(connection)
    if connection.state.status is ConnectionStatus.AUTHORIZING:
        session.servers.ask_for_login(params.name, caller.asker)
        return _with_status(AddedServer(server=view))
    try:
        tools = len(await connection.lists.entries(ListKind.TOOLS))
    except EmceepeeError as error:
        return _with_status(AddedServer(server=view, tools=0, toolsError=str(error)))
    view["tools"] = tools
    return _with_status(AddedServer(server=view, tools=tools))


@tool(
    title="Remove a server", effect=ToolEffect(), load=found_by("disconnect forget delete MCP server"), is_durable=True
)
async def remove_server(params: ByName, session: Session, caller: RequestContext) -> RemovedServer:
    """Disconnect a server, end its process and forget it."""
    await session.servers.remove(params.name, is_remote=caller.is_remote)
    return {"removed": params.name}


@tool(title="Reconnect a server", effect=ToolEffect(), load=found_by("restart retry broken MCP server"))
async def reconnect_server(params: ByName, session: Session, caller: RequestContext) -> OwnResult[ConnectedServer]:
    """Reconnect a server from any state; calls in flight fail."""
    connection = session.connection(params.name)
    with suppress(LoginNeeded):  # the reply contains the login's address
        await connection.reconnect()
    session.servers.ask_for_login(params.name, caller.asker)
    return _with_status(ConnectedServer(server=server_view(connection)))


@tool(
    title="Finish a login",
    effect=ToolEffect(destructive=False),
    load=found_by("OAuth login authorization redirect callback paste"),
    is_durable=True,
)
async def finish_authorization(params: FinishAuthorization, session: Session) -> OwnResult[ConnectedServer]:
    """Finish a login if the user's browser could not come back to emceepee."""
    connection = await session.servers.finish_login(params.server, params.redirect_url)
    return _with_status(ConnectedServer(server=server_view(connection)))


@tool(
    title="List servers",
    effect=READS_RECORDS,
    load=CORE,
    brief=Brief("List all servers: name, status, purpose, last error, number of tools.", ()),
    unlisted=(*PAGING, "tag"),
)
async def list_servers(params: ListServers, session: Session, caller: RequestContext) -> ServerList:
    """List all servers: name, status, purpose, last error, number of tools."""
    tag, servers = params.tag, session.servers
    disabled = [spec for spec in (*servers.disabled, *servers.disabled_in_file) if tag is None or tag in spec.tags]
    connections = [connection for connection in session.connections if tag is None or tag in connection.spec.tags]
    if not connections and not disabled:
        with_tag(session.connections, tag)
    views = [*map(server_summary, connections), *map(disabled_server, disabled)]
    listed = cast(
        ServerList, page(cast(list[JsonObject], views), params, SERVERS, room=session.limits.list_reply_bytes)
    )
    if (problem := session.servers.configuration_problem(is_remote=caller.is_remote)) is not None:
        listed["configurationProblem"] = problem
    return listed


@tool(
    title="Show a server's status", effect=READS_RECORDS, load=found_by("MCP server details capabilities stderr error")
)
async def get_server_status(params: OneServer, session: Session) -> ServerStatus:
    """One server in full: capabilities, its instructions, process, tasks, questions, stderr."""
    connection = session.connection(params.server)
    waiting = session.questions.open(server=params.server)
    stderr = [str(line.data) for line in session.buffers(params.server).tail if line.source == "stderr"]
    return {
        **server_view(connection),
        "workingTasks": [task_summary(task) for task in session.tasks.working(params.server)],
        "pendingRequests": [question_summary(question) for question in waiting],
        "stderrTail": stderr_excerpt([line for line in stderr if line.strip()], most=STDERR_LINES_SHOWN),
    }


def _with_status(value: S) -> OwnResult[S]:
    """Return a result that contains the server's status, so that notices need not report its connection."""
    return OwnResult([text_block(encode_text(value))], value, Mentions(server=value["server"]["name"]))
