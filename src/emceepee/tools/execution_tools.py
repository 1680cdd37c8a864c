"""Tools that list and call the backends' tools."""

from typing import Annotated, Any, Literal, cast

from pydantic import Field

from emceepee.backends.caller_errors import first_text
from emceepee.backends.catalog import ListKind
from emceepee.backends.connection import Connection
from emceepee.errors import EmceepeeError, ExecutionFailed, NotAllowed, UnknownTool, cut_name
from emceepee.sessions.lists.entry_list import list_everywhere
from emceepee.sessions.session import Session
from emceepee.sessions.views import Described
from emceepee.state.task import Task
from emceepee.surface import call_to
from emceepee.tools.declaration.argument_limits import LimitedBy
from emceepee.tools.declaration.declaration import (
    BackendResult,
    Brief,
    InputRequired,
    OwnResult,
    Params,
    ServerName,
    tool,
)
from emceepee.tools.declaration.hints import CORE, READS, Load, ToolEffect
from emceepee.tools.entry_pages import Detail, Entries, ListedEntry, Page, Paged, described, page
from emceepee.tools.excerpts.large_results import limited_result
from emceepee.tools.excerpts.patterns import compile_pattern
from emceepee.tools.replies.heartbeat import relay_progress
from emceepee.tools.replies.input_required import continue_call, describe_task
from emceepee.tools.replies.promotion import Promotion, describe_promotion
from emceepee.tools.request_context import RequestContext
from emceepee.tools.server_tags import TAG, with_tag
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

TOOL_ENTRIES = Entries("list_tools", "tools", "name", described)
DETAIL = LimitedBy(names="full_list_bytes", description="full has the schemas; unasked only up to {}")
TIMEOUT = LimitedBy(
    most="longest_call_seconds",
    names="quiet_call_seconds",
    description="Then a task; default {}",
)
TASK_TTL = LimitedBy(
    most="longest_task_ttl_seconds",
    least=1,
    names="task_ttl_seconds",
    description="Longest life of the task; default {}",
)


class ListTools(Paged):
    """Parameters: the selected tools, and how much to show of each."""

    server: str = Field(".*", description="Regex")
    tool: str = Field(".*", description="Regex")
    detail: Annotated[Detail, DETAIL] = DETAIL.field("full")
    tag: str | None = Field(None, description=TAG)


class Timed(Params):
    """Timeouts of calls to a backend."""

    timeout_ms: Annotated[int | None, TIMEOUT] = TIMEOUT.field(None)


class Bounded(Params):
    """Size limit of results that may be large."""

    max_bytes: int | None = Field(None, ge=1, description="Longer: head and handle")


class ExecuteTool(Timed, Bounded):
    """Parameters of a call to a backend's tool."""

    server: ServerName
    tool: str = Field(description="Tool name")
    args: dict[str, Any] | None = Field(None, description="By the tool's inputSchema")
    task_ttl_ms: Annotated[int | None, TASK_TTL] = TASK_TTL.field(None)
    on_question: Literal["promote", "wait"] = Field("promote", description="wait: no task if the server asks")


class ListedTools(Page):
    """`errors` names the servers that could not return their tools. `note` explains why schemas are missing."""

    tools: list[ListedEntry]


ToolResult = Annotated[
    BackendResult | InputRequired | OwnResult[Promotion],
    Described(
        "The server's own result, unchanged: every content block, `structuredContent`, `isError`, `_meta`. If the call "
        "[becomes a task](#a-call-that-becomes-a-task), the reply names the task."
    ),
]


@tool(title="List servers' tools", effect=READS, load=Load(always=True, result_chars=100_000), unlisted=("tag",))
async def list_tools(params: ListTools, session: Session) -> ListedTools:
    """List servers' tools. Full schemas can be large: detail=names or summary first, then one tool in full, is cheaper.
    Regexes are unanchored.
    """
    limits = session.limits
    server, name = compile_pattern("server", params.server), compile_pattern("tool", params.tool)
    tagged = with_tag(session.connections, params.tag)
    wanted = [connection for connection in tagged if server.search(connection.spec.name)]
    listing = await list_everywhere(wanted, ListKind.TOOLS, patience=limits.list_patience_seconds)
    found = [entry for entry in listing.entries if name.search(str(entry.get("name")))]

    def show(detail: Detail) -> JsonObject:
        return page(found, params, TOOL_ENTRIES, room=limits.list_reply_bytes, detail=detail)

    listed = show(params.detail)
    if "detail" not in params.model_fields_set:
        entries, size = listed["tools"], len(encode(listed["tools"]))
        if size > limits.full_list_bytes and len(entries) > 1:
            listed = {"note": _too_large(entries, size)} | show("summary")
    return cast(ListedTools, listed | ({"errors": listing.errors} if listing.errors else {}))


@tool(
    title="Call a server's tool",
    effect=ToolEffect(),
    load=CORE,
    brief=Brief(
        "Call a server's tool; returns its own result. If it is slow or the server asks something, the call becomes a "
        "task: the reply names its task_id, get_task_result waits for the result. emceepee's own tools: "
        "server=emceepee.",
        ("server", "tool", "args", "timeout_ms"),
    ),
    unlisted=("on_question",),
)
async def execute_tool(params: ExecuteTool, session: Session, caller: RequestContext) -> ToolResult:
    """Call a server's tool; returns its own result. If it is slow or the server asks something, the call becomes a task
    (promotion): the reply names its task_id, get_task_result waits for the result.
    """
    connection = session.connection(params.server)
    if not connection.spec.tools.permits(params.tool):
        name = cut_name(params.tool)
        raise NotAllowed(
            f'The configuration of server "{params.server}" does not allow the tool "{name}". '
            f"{call_to('list_tools')} shows the allowed ones.",
            details={"server": params.server, "tool": name},
        )
    if caller.answers is not None:
        patience = seconds(params.timeout_ms)
        return cast(ToolResult, await continue_call(caller.answers, session, caller, patience, params.max_bytes))
    arguments = params.args or {}
    try:
        with relay_progress(caller, session.clock) as on_progress:
            result = await session.call(
                params.server,
                "tools/call",
                caller.with_trace({"name": params.tool, "arguments": arguments}),
                tool=params.tool,
                arguments=arguments,
                timeout=seconds(params.timeout_ms),
                ttl=seconds(params.task_ttl_ms),
                wait_for_answers=params.on_question == "wait",
                on_progress=on_progress,
                on_call=caller.record_call,
            )
    except ExecutionFailed as error:
        whole = {"error": error.details["error"]} if "error" in error.details else {}
        if unknown := await _unknown_tool(connection, params.tool, str(error), whole):
            raise unknown from error
        raise
    if isinstance(result, Task):
        if params.on_question == "wait":
            return describe_promotion(result, session)
        return cast(ToolResult, describe_task(result, session, caller))
    if result.get("isError") and (
        unknown := await _unknown_tool(connection, params.tool, first_text(result), {"result": result})
    ):
        raise unknown
    if params.max_bytes is None and not session.limits.largest_result_bytes:
        return BackendResult(result)
    return cast(BackendResult, await limited_result("tools/call", result, params.max_bytes, session))


def seconds(milliseconds: int | None) -> float | None:
    return None if milliseconds is None else milliseconds / 1000


async def _unknown_tool(connection: Connection, name: str, answer: str, whole: JsonObject) -> UnknownTool | None:
    """Return the error if the tool is not listed. Call it only after a failure: a backend may serve unlisted tools."""
    try:
        known = [str(tool.get("name")) for tool in await connection.lists.entries(ListKind.TOOLS)]
    except EmceepeeError:
        return None
    if name in known:
        return None
    return UnknownTool(name, backend=connection.spec.name, known=known, answer=answer, whole=whole)


def _too_large(entries: list[JsonObject], size: int) -> str:
    """Return the note for a list whose schemas are too large to be shown. One tool alone is always shown in full."""
    return (
        f'The schemas of these {len(entries)} tools take {size} bytes. List one in full with server and tool="^name$".'
    )
