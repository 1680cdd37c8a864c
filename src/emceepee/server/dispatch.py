"""The way of every tool call: find the tool, check the arguments, do it, render the reply."""

from emceepee.errors import EmceepeeError, near_names
from emceepee.json_types import JsonObject
from emceepee.server.messages import INVALID_PARAMS
from emceepee.sessions.session import Session
from emceepee.telemetry.logs import EventLog
from emceepee.tools.catalogue import CATALOGUE
from emceepee.tools.declaration import Caller, Tool
from emceepee.tools.replies import error_reply, reply, with_notices

log = EventLog("dispatch")


class BadCall(Exception):
    """No tool can be found for the call: a protocol error, not a tool's."""

    code = INVALID_PARAMS


async def call_tool(params: JsonObject | None, session: Session, caller: Caller) -> JsonObject:
    """Serve one `tools/call`. Whatever goes wrong inside a tool is a reply that says so.

    Raises:
        BadCall: there is no such tool, or the request does not name one.
    """
    tool, arguments = _wanted(params)
    session.wake()
    log.debug("tool_called", tool=tool.name)
    try:
        result = reply(await tool.verb(tool.check(arguments), session, caller))
        if not tool.carries_news:
            return result  # it has them in keys of its own; an error of the same tool has not
    except EmceepeeError as error:
        log.debug("tool_refused", tool=tool.name, code=str(error.code), error=str(error))
        result = error_reply(error)
    except Exception as error:
        log.error("tool_failed", tool=tool.name, error=f"{type(error).__name__}: {error}")
        result = error_reply(EmceepeeError(f"{tool.name} failed inside emceepee; its log says more."))
    return with_notices(result, session)


def _wanted(params: JsonObject | None) -> tuple[Tool, JsonObject]:
    name = (params or {}).get("name")
    if not isinstance(name, str):
        raise BadCall("tools/call: params.name must be a string")
    tool = CATALOGUE.get(name)
    if tool is None:
        near = near_names(name, CATALOGUE)
        hint = f"did you mean {' or '.join(near)}?" if near else "tools/list shows them; backends' tools: execute_tool"
        raise BadCall(f"Unknown tool {name[:100]!r}: {hint}")
    arguments = (params or {}).get("arguments")
    if arguments is None:
        return tool, {}
    if not isinstance(arguments, dict):
        raise BadCall("tools/call: params.arguments must be an object")
    return tool, arguments
