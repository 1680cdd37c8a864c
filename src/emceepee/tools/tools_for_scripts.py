"""emceepee's own tools for scripts: the same tools with the same checks, as parts of the script's request."""

from collections.abc import Iterable
from typing import Any

from emceepee.backends.spec import BackendSpec, ServerEntry
from emceepee.codemode.bindings import BadScriptCall
from emceepee.codemode.stubs import parameters
from emceepee.codemode.tool_access import ToolAnswer
from emceepee.errors import EmceepeeError, ErrorCode, NotAllowed, caught, near_names
from emceepee.sessions.call import Call
from emceepee.sessions.session import Session
from emceepee.telemetry import spans
from emceepee.telemetry.spans import Span
from emceepee.tools.declaration.aliases import own_call
from emceepee.tools.declaration.declaration import BackendResult, InputRequired, Outcome, OwnResult, Tool
from emceepee.tools.entry_pages import Paged
from emceepee.tools.excerpts.large_results import UNLIMITED
from emceepee.tools.replies.replies import reply
from emceepee.tools.request_context import RequestContext, ServerPolicy
from emceepee.wire.json_types import JsonObject

MEMORY_PER_LISTED_BYTE = 16  # memory of a list of entries in a script, per byte of its JSON; measured, plus a margin
_RUNS_AT_SERVER = ("execute_tool", "read_resource", "get_prompt")


class _NoNewServers:
    """Rejects added servers: after a restart, a script's owner and the owner's rights are unknown."""

    async def admit(self, entry: ServerEntry, *, is_remote: bool) -> BackendSpec:
        raise NotAllowed("A script that continued after a restart of emceepee cannot add servers.")


class _InnerContext(RequestContext):
    """The request of a script: it has the rights of the script's sender, and nobody reads its reply."""

    def __init__(self, session: Session, caller: RequestContext | None, call_id: str) -> None:
        policy: ServerPolicy | None = _NoNewServers() if caller is None else caller.policy
        super().__init__(
            session=session,
            principal=session.principal,
            is_remote=True if caller is None else caller.is_remote,
            directory=None if caller is None else caller.directory,
            policy=policy,
            conversation=None if caller is None else caller.conversation,
        )
        self._call_id = call_id

    def record_call(self, session: Session, call: Call) -> None:
        """Assign the call's id before it is sent, because the script's own record contains the id."""
        call.call_id = self._call_id
        super().record_call(session, call)


class ToolsForScripts:
    """Every tool except the one for scripts."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._by_name = {tool.name: tool for tool in tools}

    async def call(
        self,
        tool: str,
        arguments: JsonObject,
        session: Session,
        *,
        caller: Any,
        parent: Span | None,
        call_id: str,
    ) -> ToolAnswer:
        """Raises: EmceepeeError."""
        found = self._find(tool)
        arguments = found.aliases.resolve(arguments)
        if tool in _RUNS_AT_SERVER:  # the script waits for the call, and becomes a task if that takes long
            arguments = {"timeout_ms": round(session.limits.longest_call_seconds * 1000)} | arguments
        if "max_bytes" in found.params.model_fields:  # results in a script cost no context
            arguments = {"max_bytes": UNLIMITED} | arguments
        if tool == "execute_tool":
            arguments = {"task_ttl_ms": round(session.limits.longest_task_ttl_seconds * 1000)} | arguments
        span = found.begin_span(session.journal, session, arguments, parent)
        spans.serve(span)
        context = _InnerContext(session, caller, call_id)
        try:
            params = found.check(arguments)
            if isinstance(params, Paged):
                params.allow(session.limits.script_memory_bytes // MEMORY_PER_LISTED_BYTE)
            outcome = await found.run(params, session, context)
        except EmceepeeError as error:
            span.failed(str(error))
            raise caught(error) from None
        except BaseException:
            span.cancelled()
            raise
        context.confirm()
        if span.task_id is None:
            span.replied(reply(outcome))
        return _answer(outcome)

    def resolve(self, tool: str, arguments: JsonObject) -> tuple[str, JsonObject]:
        """Return the tool and its arguments, also for a tool called through execute_tool. Raises: BadScriptCall."""
        while (inner := own_call({"name": tool, "arguments": arguments})) is not None:
            meant, given = inner["name"], inner["arguments"]
            if not isinstance(meant, str) or not isinstance(given, dict | None):
                raise BadScriptCall("give the name of a tool of emceepee and a dict of its arguments")
            tool, arguments = meant, given or {}
        return tool, arguments

    def is_repeatable(self, tool: str) -> bool:
        found = self._by_name.get(tool)
        return found is not None and found.effect.read_only and tool not in _RUNS_AT_SERVER

    def parameters_of(self, tool: str) -> str:
        found = self._by_name.get(tool)
        return "" if found is None else ", ".join(item.words for item in parameters(found.input_schema))

    def _find(self, name: str) -> Tool:
        found = self._by_name.get(name)
        if found is None:
            near = near_names(name, self._by_name)
            hint = (
                f"Did you mean {' or '.join(near)}?" if near else "mcp.call_tool(server, tool, args) calls a server's."
            )
            raise EmceepeeError(f'emceepee has no tool "{name[:100]}". {hint}', code=ErrorCode.TOOL_NOT_FOUND)
        return found


def _answer(outcome: Outcome) -> ToolAnswer:
    match outcome:
        case InputRequired(result):  # impossible: a script accepts no questions
            return ToolAnswer(value=result, is_raw=True)
        case BackendResult(result):
            return ToolAnswer(value=result, is_raw=True)
        case OwnResult(_, value):
            task = value.get("proxy_task")
            task_id = task.get("task_id") if isinstance(task, dict) else None
            return ToolAnswer(value=dict(value), task_id=task_id)
        case value:
            return ToolAnswer(value=dict(value))
