"""The way of every tool call: find the tool, check the arguments, do it, render the reply."""

from collections.abc import Awaitable, Callable, Iterable
from typing import cast

from mcp.shared.inbound import X_MCP_HEADER_KEY

from emceepee.codec import encode
from emceepee.errors import EmceepeeError, ErrorCode, InvalidArguments, caught, near_names
from emceepee.json_rpc import INVALID_PARAMS
from emceepee.json_types import JsonObject
from emceepee.server.request_spans import begin_tool_span
from emceepee.sessions.session import Session
from emceepee.telemetry import spans
from emceepee.telemetry.logs import EventLog
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration import Caller, Outcome, Tool
from emceepee.tools.replies import error_reply, reply, with_notices

log = EventLog("dispatch")
SESSION_ARGUMENT = "session"
_MIRROR_KEY = X_MCP_HEADER_KEY.encode()


class BadCall(Exception):
    """No tool can be found for the call: a protocol error, not a tool's."""

    code = INVALID_PARAMS


class Tools:
    """The tools that a door serves."""

    def __init__(self, tools: Iterable[Tool] = TOOLS) -> None:
        self._by_name = {tool.name: tool for tool in tools}
        schemas = {tool.name: tool.input_schema for tool in self._by_name.values()}
        self._mirroring = {name: schema for name, schema in schemas.items() if _MIRROR_KEY in encode(schema)}

    async def call(self, params: JsonObject | None, session: Session | None, caller: Caller) -> JsonObject:
        """Serve one `tools/call`. Whatever goes wrong inside a tool is a reply that says so.

        `session` is the caller's own; a `session` argument names another, and comes first.

        Raises:
            BadCall: there is no such tool, or the request does not name one.
        """
        tool, arguments = self._find_tool(params)
        try:
            session, arguments = _resolve_session(tool, arguments, session, caller)
        except EmceepeeError as error:
            result = error_reply(error)
            if session is None or not tool.needs_session or caller.is_gone():
                return result
            return with_notices(result, session, error, caller.on_events)
        arguments = tool.aliases.resolve(arguments)
        if not tool.needs_session:
            return (await self._run_tool(tool, arguments, session, caller))[0]
        session.wake()
        span = begin_tool_span(session, tool, arguments)
        spans.serve(span)
        session.open_calls += 1
        try:
            result, outcome = await self._run_tool(tool, arguments, session, caller)
        except BaseException:
            if span.task_id is None:
                span.cancelled()
            raise
        finally:
            session.open_calls -= 1
        if span.task_id is None:
            span.replied(result)
        # An error carries notices even if it is that of the tool that has them in its own keys.
        takes_notices = tool.carries_notices or isinstance(outcome, EmceepeeError)
        if not takes_notices or caller.is_gone():
            return result
        return with_notices(result, session, outcome, caller.on_events)

    async def _run_tool(
        self, tool: Tool, arguments: JsonObject, session: Session, caller: Caller
    ) -> tuple[JsonObject, Outcome | EmceepeeError]:
        """The result as it goes out, and what it was made of."""
        try:
            outcome = await tool.run(tool.check(arguments), session, caller)
            return reply(outcome), outcome
        except EmceepeeError as error:
            failure = caught(error)
        except Exception as error:
            log.error("tool_failed", tool=tool.name, error=f"{type(error).__name__}: {error}")
            failure = EmceepeeError(f"{tool.name} failed inside emceepee; its log says more.")
        return error_reply(failure), failure

    def needs_session(self, name: object) -> bool:
        """Whether there is a tool of that name, and it is one that works in a session."""
        tool = self._by_name.get(name) if isinstance(name, str) else None
        return tool is not None and tool.needs_session

    def mirroring_schema(self, name: object) -> JsonObject | None:
        """What the arguments of a tool look like whose caller repeats some of them in headers; None of any other."""
        return self._mirroring.get(name) if isinstance(name, str) else None

    def _find_tool(self, params: JsonObject | None) -> tuple[Tool, JsonObject]:
        name = (params or {}).get("name")
        if not isinstance(name, str):
            raise BadCall("tools/call: params.name must be a string")
        tool = self._by_name.get(name)
        if tool is None:
            near = near_names(name, self._by_name)
            hint = (
                f"did you mean {' or '.join(near)}?" if near else "tools/list shows them; backends' tools: execute_tool"
            )
            raise BadCall(f"Unknown tool {name[:100]!r}: {hint}")
        arguments = (params or {}).get("arguments")
        if arguments is None:
            return tool, {}
        if not isinstance(arguments, dict):
            raise BadCall("tools/call: params.arguments must be an object")
        return tool, arguments


CallTool = Callable[[JsonObject | None, Session | None, Caller], Awaitable[JsonObject]]
call_tool: CallTool = Tools().call


def _resolve_session(
    tool: Tool, arguments: JsonObject, session: Session | None, caller: Caller
) -> tuple[Session, JsonObject]:
    """The session that a call means, and its arguments without the one that says so. Raises: EmceepeeError."""
    if SESSION_ARGUMENT in arguments and SESSION_ARGUMENT not in tool.params.model_fields:
        arguments = dict(arguments)
        handle = arguments.pop(SESSION_ARGUMENT)
        if not isinstance(handle, str) or caller.session_handles is None:
            raise InvalidArguments("session: give a handle from open_session, or leave it out.")
        session = caller.session_handles.find(handle)
    if session is None and tool.needs_session:
        raise EmceepeeError(
            "This call says no session. Call open_session once and pass its handle as the argument `session`, or pin "
            "a name in the client's configuration with the header Emceepee-Session or ?session= in the URL.",
            code=ErrorCode.SESSION_NOT_FOUND,
        )
    return cast(Session, session), arguments
