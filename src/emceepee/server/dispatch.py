"""The path of every tool call: find the tool, check the arguments, run the tool, and render the reply."""

from collections.abc import Iterable
from typing import cast

from emceepee.errors import EmceepeeError, ErrorCode, InvalidArguments, caught, near_names
from emceepee.sessions.session import Session
from emceepee.surface import Surface, UnknownSurface, call_to, order_of_listing
from emceepee.telemetry import spans
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.redaction import MASK
from emceepee.telemetry.spans import Span, SpanKind
from emceepee.tools.catalogue import CODE_MODE
from emceepee.tools.declaration.aliases import SESSION_ARGUMENT, own_call
from emceepee.tools.declaration.declaration import BACKEND_REQUESTS, BackendResult, Outcome, Tool
from emceepee.tools.replies.input_required import RESPONSES, STATE, BadRound, read_round
from emceepee.tools.replies.replies import error_reply, promises_durably, reply, with_move, with_notices, with_unsaved
from emceepee.tools.request_context import InputRound, RequestContext
from emceepee.wire.json_rpc import ProtocolError
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_PARAMS

log = EventLog("dispatch")


class BadCall(ProtocolError):
    """A call that cannot be passed to a tool. It is a protocol error, not a tool error."""

    def __init__(self, message: str) -> None:
        super().__init__(INVALID_PARAMS, message)


class Tools:
    """The tools that emceepee serves. `surface` applies to callers that request none."""

    def __init__(self, tools: Iterable[Tool], surface: Surface = Surface.FULL) -> None:
        self._by_name = {tool.name: tool for tool in tools}
        self.surface = surface

    def check_surface(self, surface: Surface) -> None:
        """Raises: UnknownSurface if the surface would list no tools."""
        if not order_of_listing(surface, self._by_name.keys() & CODE_MODE) and surface is not Surface.FULL:
            raise UnknownSurface(
                f"the surface {surface} requires code mode, which is disabled here; request the surface full"
            )

    async def call(self, params: JsonObject | None, context: RequestContext) -> JsonObject:
        """Serve one `tools/call`. A failure inside a tool becomes an error reply.

        The context's session is the caller's own. A `session` argument names another session, and takes precedence.

        Raises:
            BadCall: the tool is unknown or missing, or the request answers questions that were not asked.
        """
        try:
            tool, arguments = self._find_tool(params)
            session, arguments = await _resolve_session(tool, arguments, context)
            if params is not None and (STATE in params or RESPONSES in params):
                context.answers = _read_round(params, tool, session)
        except EmceepeeError as error:  # raised after `_find_tool` returned, so `tool` is bound
            return await self._reply_without_session(tool, params, error, context)
        except BaseException as error:
            self._observe_failure(params, context, error)
            raise
        arguments = tool.aliases.resolve(arguments)
        if not tool.needs_session:
            return await self._run_outside(tool, arguments, session, params, context)
        session.wake()
        span = tool.begin_span(session.journal, session, arguments, origin=context)
        spans.serve(span)
        session.open_calls += 1
        try:
            result, outcome = await self._run_tool(tool, arguments, session, context)
        except BaseException:
            if span.task_id is None:
                span.cancelled()
            raise
        finally:
            session.open_calls -= 1
        if span.task_id is None:
            span.replied(result)
        carrying = result
        # Every error carries notices, even from a tool whose results have notices in keys of their own.
        takes_notices = tool.carries_notices or isinstance(outcome, EmceepeeError)
        if takes_notices and not context.is_gone:
            carrying = with_notices(result, session, outcome, context)
        may_be_unsaved = tool.is_durable
        if session.is_lost:
            return _last_reply(tool, result, outcome, session, context)
        if session.unsaved:
            if not await _is_kept(session, context):
                return _last_reply(tool, result, outcome, session, context)
            may_be_unsaved = may_be_unsaved or bool(session.unsaved)
        if may_be_unsaved and _is_only_in_memory(tool, outcome, session):
            carrying = with_unsaved(carrying, session, outcome, context)
        return carrying

    async def _reply_without_session(
        self, tool: Tool, params: JsonObject | None, error: EmceepeeError, context: RequestContext
    ) -> JsonObject:
        result = error_reply(error)
        if (span := self.begin_unkept(params, context)) is not None:
            span.replied(result)
        if context.session is None or not tool.needs_session or context.is_gone:
            return result
        carrying = with_notices(result, context.session, error, context)
        if context.session.unsaved and not await _is_kept(context.session, context):
            return with_move(result, context.session, error, context)
        return carrying

    async def _run_outside(
        self, tool: Tool, arguments: JsonObject, session: Session, params: JsonObject | None, context: RequestContext
    ) -> JsonObject:
        """Run a tool that needs no session. No session's journal records its calls."""
        span = self.begin_unkept(params, context)
        try:
            result, outcome = await self._run_tool(tool, arguments, session, context)
        except BaseException:
            if span is not None:
                span.cancelled()
            raise
        if span is not None:
            span.replied(result)
        if context.directory is not None and context.directory.storage.problem and promises_durably(tool, outcome):
            return with_unsaved(result, session, outcome, context)
        return result

    def begin_unkept(self, params: JsonObject | None, context: RequestContext) -> Span | None:
        """Begin a span for a refused call, or for a call without a session. Return None if there are no observers."""
        journal = context.unkept_journal()
        if journal is None:
            return None
        asked = params or {}
        while (own := own_call(asked)) is not None:
            asked = own
        name, arguments = asked.get("name"), asked.get("arguments")
        name, given = name if isinstance(name, str) else "", arguments if isinstance(arguments, dict) else {}
        if (tool := self._by_name.get(name)) is None:  # without a schema, any argument may be private, so mask all
            return journal.begin(SpanKind.UNKNOWN_TOOL, name, None, dict.fromkeys(given, MASK), origin=context)
        if SESSION_ARGUMENT not in tool.params.model_fields:
            given = {key: value for key, value in given.items() if key != SESSION_ARGUMENT}
        return tool.begin_span(journal, context.session, tool.aliases.resolve(given), origin=context)

    def _observe_failure(self, params: JsonObject | None, context: RequestContext, error: BaseException) -> None:
        span = self.begin_unkept(params, context)
        if span is not None and isinstance(error, Exception):
            span.failed(str(error))
        elif span is not None:
            span.cancelled()

    async def _run_tool(
        self, tool: Tool, arguments: JsonObject, session: Session, context: RequestContext
    ) -> tuple[JsonObject, Outcome | EmceepeeError]:
        """Return the reply, and the outcome or error that it was made from."""
        try:
            outcome = await tool.run(tool.check(arguments), session, context)
            return reply(outcome), outcome
        except EmceepeeError as error:
            failure = caught(error)
        except Exception as error:
            log.error("tool_failed", tool=tool.name, error=f"{type(error).__name__}: {error}")
            failure = EmceepeeError(f"{tool.name} failed inside emceepee; its log says more.")
        return error_reply(failure), failure

    def needs_session(self, params: JsonObject) -> bool:
        """Return whether the call names an existing tool that works in a session."""
        name = (own_call(params) or params).get("name")
        tool = self._by_name.get(name) if isinstance(name, str) else None
        return tool is not None and tool.needs_session

    def _find_tool(self, params: JsonObject | None) -> tuple[Tool, JsonObject]:
        if (own := own_call(params or {})) is not None:
            return self._find_tool(own)
        name = (params or {}).get("name")
        if not isinstance(name, str):
            raise BadCall("tools/call: params.name must be a string")
        tool = self._by_name.get(name)
        if tool is None and name in CODE_MODE:
            raise BadCall(
                f"{name}: code mode is switched off here. Use {call_to('list_tools')} and {call_to('execute_tool')}."
            )
        if tool is None:
            near = near_names(name, self._by_name)
            hint = (
                f"did you mean {' or '.join(near)}?"
                if near
                else f"tools/list shows them; backends' tools: {call_to('execute_tool')}"
            )
            raise BadCall(f"Unknown tool {name[:100]!r}: {hint}")
        arguments = (params or {}).get("arguments")
        if arguments is None:
            return tool, {}
        if not isinstance(arguments, dict):
            raise BadCall("tools/call: params.arguments must be an object")
        return tool, arguments


def _last_reply(
    tool: Tool, result: JsonObject, outcome: Outcome | EmceepeeError, session: Session, context: RequestContext
) -> JsonObject:
    """Return the reply of a call whose session another replica took over during the call.

    Changes made here are not stored, so the reply is an error. Results and errors of backends are passed on.
    """
    if isinstance(outcome, BackendResult | EmceepeeError):
        return with_move(result, session, outcome, context)
    return error_reply(_moved(tool))


def _is_only_in_memory(tool: Tool, outcome: Outcome | EmceepeeError, session: Session) -> bool:
    """Return whether the reply promises durability that the store could not provide."""
    return promises_durably(tool, outcome) and (session.unsaved.has_problem or session.servers.are_unsaved)


def _moved(tool: Tool) -> EmceepeeError:
    return EmceepeeError(
        f"Another replica of emceepee took this session over during {tool.name}; its result is lost. Check whether it "
        "took effect before you call it again.",
        details={"reason": "replica", "mayHaveRun": True},
    )


async def _is_kept(session: Session, context: RequestContext) -> bool:
    """Save the session before its reply is sent, or leave the save pending.

    Return False if another replica may own the session.
    """
    try:
        await session.unsaved.save()
    except BaseException:  # cancelled
        context.redeliver_events()
        raise
    if session.is_lost:
        return False
    if session.unsaved and session.unsaved.is_in_doubt:
        context.redeliver_events()
        return False
    return True


async def _resolve_session(tool: Tool, arguments: JsonObject, context: RequestContext) -> tuple[Session, JsonObject]:
    """Return the session of a call, and its arguments without `session`. Raises: EmceepeeError."""
    session = context.session
    if SESSION_ARGUMENT in arguments and SESSION_ARGUMENT not in tool.params.model_fields:
        arguments = dict(arguments)
        handle = arguments.pop(SESSION_ARGUMENT)
        if not isinstance(handle, str) or context.directory is None:
            raise InvalidArguments(f"session: pass a handle from {call_to('open_session')}, or omit the argument.")
        session = await context.find_session(handle)
    if session is None and tool.needs_session:
        raise EmceepeeError(
            f"This call names no session. Call {call_to('open_session')} once and pass its handle as the argument "
            "`session`, or pin a name in the client's configuration with the header Emceepee-Session or ?session= in "
            "the URL.",
            code=ErrorCode.SESSION_NOT_FOUND,
        )
    return cast(Session, session), arguments


def _read_round(params: JsonObject, tool: Tool, session: Session) -> InputRound | None:
    """Read the answers of a call that the client sends again. Raises: BadCall."""
    try:
        return read_round(params, session) if tool.name in BACKEND_REQUESTS else None
    except BadRound as error:
        raise BadCall(str(error)) from None
