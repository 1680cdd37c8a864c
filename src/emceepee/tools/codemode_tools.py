"""The tool that runs scripts."""

from typing import Annotated, NotRequired, TypedDict, cast

from pydantic import Field, model_validator

from emceepee.codemode.engine import METHOD, CodeMode
from emceepee.codemode.private_scripts import gives_answers
from emceepee.codemode.script import Script
from emceepee.errors import InvalidArguments, TimedOut, Unsupported
from emceepee.sessions.session import Session
from emceepee.sessions.views import Described
from emceepee.state.task import Task
from emceepee.surface import call_to
from emceepee.tools.declaration.declaration import OwnResult, Params, tool
from emceepee.tools.declaration.hints import CORE, ToolEffect
from emceepee.tools.excerpts.large_results import limited_result
from emceepee.tools.replies.heartbeat import heartbeat, relay_progress
from emceepee.tools.replies.promotion import Promotion, describe_promotion
from emceepee.tools.replies.task_outcome import task_outcome
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_types import JsonObject, JsonValue

LONGEST_SECONDS = 300


class Execute(Params):
    """Parameters: a new script, or the task of a running one."""

    code: str | None = Field(None, min_length=1, description="Python")
    timeout: float | None = Field(None, ge=1, le=LONGEST_SECONDS, description="Seconds until it becomes a task")
    task_id: str | None = Field(None, description="Instead of code: wait for that script")

    @model_validator(mode="after")
    def _one_of_both(self) -> "Execute":
        if (self.code is None) == (self.task_id is None):
            raise ValueError("give code, or the task_id of a script")
        return self


class ScriptError(TypedDict):
    """The exception that ended the script, or the reason why it did not run. `line` is a line of the script."""

    name: str
    message: str
    line: NotRequired[int]


class ScriptStats(TypedDict):
    """The resources that a script used."""

    durationMs: int
    mcpCalls: int


class Executed(TypedDict):
    """The outcome of a script. `result` is its value as JSON."""

    success: bool
    result: NotRequired[JsonValue]
    error: NotRequired[ScriptError]
    logs: list[str]
    stats: ScriptStats


ScriptResult = Annotated[
    OwnResult[Executed] | OwnResult[Promotion],
    Described(
        "`{success, result?, error?: {name, message, line?}, logs, stats: {durationMs, mcpCalls}}`. `result` is the "
        "value of the last expression, as JSON, and `logs` are the lines that the script printed and logged. A script "
        "that [becomes a task](#a-call-that-becomes-a-task) returns that task instead. See "
        "[run scripts](../how-to/run-scripts.md)."
    ),
]


def _is_private(arguments: JsonObject) -> bool:
    """Return whether the source may contain an answer, even under a misspelled argument name."""
    return any(
        not isinstance(value, str | float | int | None) or (isinstance(value, str) and gives_answers(value))
        for value in arguments.values()
    )


@tool(title="Run a script", effect=ToolEffect(), load=CORE, is_private=_is_private)
async def codemode_execute(params: Execute, session: Session, caller: RequestContext) -> ScriptResult:
    """Run Python that calls many tools and returns only what you need: loops, filters and joins cost no context. The
    last expression is the result. Sandboxed: no files, network or packages. await every call; asyncio.gather runs them
    side by side. mcp.call_tool(server, tool, args) returns structured content or text, and raises on errors.
    `from servers import github` gives typed functions: await github.create_issue(title="x"). Also
    mcp.list_tools(server, tool), list_servers(), list_resources(), list_resource_templates(), list_prompts(),
    read_resource(server, uri), get_prompt(server, name, arguments), sleep(seconds), log(*values), and tool(name, args)
    for emceepee's other tools. A slow script, or one whose server asks something, becomes a task.
    """
    engine = _engine(session)
    if params.task_id is not None:
        return await _wait_for(params.task_id, params.timeout, session, caller)
    quiet = session.limits.quiet_call_seconds if caller.on_progress is None else session.limits.call_seconds
    patience = min(quiet, LONGEST_SECONDS) if params.timeout is None else params.timeout
    with relay_progress(caller, session.clock) as on_progress:
        call = engine.prepare(session, str(params.code), patience=patience, caller=caller, on_progress=on_progress)
        result = await session.run(call, patience, caller.record_call)
    if isinstance(result, Task):
        await engine.store(call)
        return _describe(session.tasks.get(result.task_id), session)
    return cast(OwnResult[Executed], await limited_result(METHOD, result, None, session))


async def _wait_for(
    task_id: str, timeout: float | None, session: Session, caller: RequestContext
) -> OwnResult[Executed] | OwnResult[Promotion]:
    task = session.tasks.get(task_id)
    if task.method != METHOD:
        raise InvalidArguments(f"Task {task_id} is no script. {call_to('get_task_result')} waits for it.")
    seconds = session.limits.quiet_call_seconds if timeout is None else timeout
    try:
        with session.activity.waiting(), heartbeat(caller, session.clock, seconds):
            task = await session.tasks.wait_until_finished(task_id, seconds)
    except TimedOut:
        return _describe(session.tasks.get(task_id), session)
    return cast(OwnResult[Executed], await task_outcome(task, session))


def _describe(task: Task, session: Session) -> OwnResult[Promotion]:
    """Describe the script's task, with the open questions of the servers that it calls."""
    call = session.calls.find_task(task.task_id)
    script = call.connection if call is not None and isinstance(call.connection, Script) else None
    asked = [] if script is None else [item for item in session.questions.open() if script.calls.may_have_asked(item)]
    return describe_promotion(task, session, asked_for_it=asked)


def _engine(session: Session) -> CodeMode:
    if not isinstance(session.scripts, CodeMode):
        raise Unsupported(f"Code mode is switched off here. Use {call_to('list_tools')} and {call_to('execute_tool')}.")
    return session.scripts
