"""Converts the answer to a script's call into a return value or an exception."""

from typing import Any

from emceepee.backends.catalog import ListKind
from emceepee.codemode.bindings import CALL_TOOL, read, said, spoken
from emceepee.codemode.kept_script import PendingCall
from emceepee.codemode.stubs import parameters
from emceepee.codemode.tool_access import ToolAccess, ToolAnswer
from emceepee.errors import EmceepeeError, ErrorCode, ExecutionFailed, cut_name
from emceepee.sessions.session import Session
from emceepee.telemetry.value_preview import preview
from emceepee.wire.json_types import JsonObject

LONGEST_MESSAGE = 2000  # characters of a server's error text
_EXCEPTIONS = {
    ErrorCode.INVALID_ARGUMENTS: "ValueError",
    ErrorCode.NOT_ALLOWED: "PermissionError",
    ErrorCode.SERVER_NOT_FOUND: "LookupError",
    ErrorCode.TOOL_NOT_FOUND: "LookupError",
    ErrorCode.TIMEOUT: "TimeoutError",
}
_ABOUT_PARAMETERS = (ErrorCode.EXECUTION_FAILED, ErrorCode.INVALID_ARGUMENTS)


def returned(value: Any) -> JsonObject:
    return {"return_value": value}


def raised(name: str, message: str) -> JsonObject:
    return {"exc_type": name, "message": message[:LONGEST_MESSAGE]}


def is_exception(answer: JsonObject) -> bool:
    return "exc_type" in answer


def value_of(call: PendingCall, answer: ToolAnswer) -> Any:
    """Return the value for the script. Raises: ExecutionFailed if the server says that its tool failed."""
    if answer.is_raw:
        if answer.value.get("isError"):
            raise ExecutionFailed(_first_words(answer.value.get("content")) or "it failed without a message")
        return said(answer.value)
    if call.key is not None:
        return answer.value.get(call.key)
    if call.function == "read_resource" and "contents" in answer.value:
        return read(answer.value["contents"])
    if call.function == "get_prompt" and "messages" in answer.value:
        return spoken(answer.value["messages"])
    return answer.value


def notes_on(call: PendingCall, answer: ToolAnswer) -> list[str]:
    """Return log lines about missing entries and servers: the script itself receives only the entries."""
    if call.key is None or not isinstance(shown := answer.value.get(call.key), list):
        return []
    notes = []
    if rest := answer.value.get("remaining"):
        notes.append(
            f"mcp.{call.function}: {len(shown)} of {len(shown) + rest} entries, which is as much as a script is given. "
            "Name a server, or ask for less of each."
        )
    errors = answer.value.get("errors") or []
    notes += [f"mcp.{call.function}: {error['server']} is missing: {error['message']}" for error in errors]
    return [note[:LONGEST_MESSAGE] for note in notes]


def _name(value: Any) -> str:
    return cut_name(value) if isinstance(value, str) else "?"


def _first_words(content: Any) -> str:
    shown, _ = preview(content, LONGEST_MESSAGE)
    return str(said({"content": shown}))


async def exception_for(call: PendingCall, error: EmceepeeError, session: Session, tools: ToolAccess) -> JsonObject:
    """Build the exception for the script: what failed and, for bad arguments, the tool's parameters."""
    where = call.function
    if where == CALL_TOOL:
        where = f"{_name(call.arguments.get('server'))}.{_name(call.arguments.get('tool'))}"
    words = f"{where}: {error}"
    if error.code in _ABOUT_PARAMETERS and (known := await _parameters(call, session, tools)):
        words = f"{words[: LONGEST_MESSAGE - len(known) - 20]} Parameters: {known}"
    return raised(_EXCEPTIONS.get(error.code, "RuntimeError"), words)


async def _parameters(call: PendingCall, session: Session, tools: ToolAccess) -> str:
    if call.function != CALL_TOOL:
        return tools.parameters_of(call.function)
    server, name = call.arguments.get("server"), call.arguments.get("tool")
    try:
        entries = await session.connection(str(server)).lists.entries(ListKind.TOOLS)
    except EmceepeeError:
        return ""
    schema = next((entry.get("inputSchema") for entry in entries if entry.get("name") == name), None)
    return ", ".join(parameter.words for parameter in parameters(schema))[: LONGEST_MESSAGE // 2]
