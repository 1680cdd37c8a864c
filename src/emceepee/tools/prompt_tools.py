"""Tools for the backends' prompts and for completing arguments."""

from typing import Annotated, NotRequired, TypedDict, cast

from pydantic import Field

from emceepee.backends.catalog import ListKind
from emceepee.errors import Unsupported
from emceepee.sessions.session import Session
from emceepee.sessions.views import Described
from emceepee.state.task import Task
from emceepee.tools.content import CallResult
from emceepee.tools.declaration.declaration import Params, ServerName, tool
from emceepee.tools.declaration.hints import READS, found_by
from emceepee.tools.entry_pages import ListedEntry, Page
from emceepee.tools.excerpts.large_results import limited_result
from emceepee.tools.execution_tools import Bounded, Timed, seconds
from emceepee.tools.replies.heartbeat import relay_progress
from emceepee.tools.replies.input_required import continue_call, describe_task
from emceepee.tools.request_context import RequestContext
from emceepee.tools.resource_tools import ListOf, list_kind
from emceepee.wire.json_types import JsonObject


class GetPrompt(Timed, Bounded):
    """Parameters: one prompt and its arguments."""

    server: ServerName
    name: str = Field(description="Prompt name")
    arguments: dict[str, str] | None = Field(None, description="Its arguments, as strings")


class Complete(Params):
    """Parameters: an argument to complete."""

    server: ServerName
    ref: str = Field(description="Prompt name or template URI")
    argument: str = Field(description="Argument name")
    value: str = Field(description="Typed so far")
    context: dict[str, str] | None = Field(None, description="Known arguments")


class ListedPrompts(Page):
    """`errors` names the servers that could not return their prompts."""

    prompts: list[ListedEntry]


PromptResult = Annotated[
    CallResult,
    Described(
        "The server's own result: `{description?, messages: […]}`, or [the task](#a-call-that-becomes-a-task) that the "
        "call became."
    ),
]


class Completion(TypedDict):
    """The server's suggestions."""

    values: list[str]
    total: NotRequired[int]
    hasMore: NotRequired[bool]


@tool(title="List servers' prompts", effect=READS, load=found_by("MCP prompts slash commands"), unlisted=("detail",))
async def list_prompts(params: ListOf, session: Session) -> ListedPrompts:
    """List servers' prompts and their arguments."""
    return cast(ListedPrompts, await list_kind(ListKind.PROMPTS, params, session))


@tool(title="Get a prompt", effect=READS, load=found_by("MCP prompt text template"), unlisted=("max_bytes",))
async def get_prompt(params: GetPrompt, session: Session, caller: RequestContext) -> PromptResult:
    """Get a prompt's messages, its arguments filled in."""
    if caller.answers is not None:
        return await continue_call(caller.answers, session, caller, seconds(params.timeout_ms), params.max_bytes)
    request: JsonObject = {"name": params.name}
    if params.arguments is not None:
        request["arguments"] = params.arguments
    with relay_progress(caller, session.clock) as on_progress:
        result = await session.call(
            params.server,
            "prompts/get",
            caller.with_trace(request),
            tool="get_prompt",
            arguments=request,
            timeout=seconds(params.timeout_ms),
            on_progress=on_progress,
            on_call=caller.record_call,
        )
    if isinstance(result, Task):
        return describe_task(result, session, caller)
    return await limited_result("prompts/get", result, params.max_bytes, session)


@tool(title="Complete an argument", effect=READS, load=found_by("autocomplete MCP prompt argument"))
async def complete(params: Complete, session: Session) -> Completion:
    """Suggest values for an argument of a prompt or resource template."""
    connection = session.connection(params.server)
    link = await connection.ready()
    if "completions" not in link.facts.capabilities:
        raise Unsupported(f'Server "{params.server}" offers no completions.', details={"server": params.server})
    is_template = "://" in params.ref or "{" in params.ref
    ref = {"type": "ref/resource", "uri": params.ref} if is_template else {"type": "ref/prompt", "name": params.ref}
    request: JsonObject = {"ref": ref, "argument": {"name": params.argument, "value": params.value}}
    if params.context is not None:
        request["context"] = {"arguments": params.context}
    result = await connection.ask("completion/complete", request)
    completion = result.get("completion")
    completion = completion if isinstance(completion, dict) else {}
    known = {key: completion[key] for key in ("total", "hasMore") if completion.get(key) is not None}
    return cast(Completion, {"values": completion.get("values", [])} | known)
