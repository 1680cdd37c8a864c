"""The part of the protocol that a pipe needs: pending requests, and errors for answers that will not come."""

import json
import re
from typing import Any, TypeAlias

MessageId: TypeAlias = int | str
# The end of a stopping daemon's answer to a request that it did not begin.
_NOT_BEGUN = b'"error":{"code":-32600,"message":"The server is shutting down."}}'
LOST = -32000  # the first of the codes that each program defines for itself
INVALID_REQUEST = -32600
# Requests without side effects, however often they are made. A tool call qualifies if the tool only reads, and does not
# wait: a second wait would exceed the caller's timeout.
REPEATABLE_METHODS = frozenset(
    (
        *("initialize", "ping", "server/discover", "completion/complete", "tools/list", "prompts/list", "prompts/get"),
        *("resources/list", "resources/templates/list", "resources/read", "tasks/list", "tasks/get"),
    )
)
REPEATABLE_TOOLS = frozenset(
    (
        *(
            "codemode_search",
            "complete",
            "get_elicitations",
            "get_prompt",
            "get_sampling_requests",
            "get_server_status",
        ),
        *("get_task", "get_timer", "list_prompts", "list_resource_templates", "list_resources", "list_servers"),
        *("list_tasks", "list_timers", "list_tools", "read_resource", "read_result"),
    )
)
# Matches an answer as emceepee writes it: then the rest, which may be long, need not be parsed.
_ANSWER = re.compile(rb'\{"jsonrpc":"2\.0","id":(?:(\d{1,18})|"([\w-]{1,100})"),"(?:result|error)":').match


def parse(line: bytes) -> list[dict[str, Any]]:
    """Return the messages in a line; none if it is unreadable, which the daemon will report."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return []
    return [item for item in (value if isinstance(value, list) else [value]) if isinstance(item, dict)]


def requests_in(messages: list[dict[str, Any]]) -> list[MessageId]:
    """Return the ids of the messages that expect an answer."""
    return [item["id"] for item in messages if "method" in item and is_id(item.get("id"))]


def canceled_in(messages: list[dict[str, Any]]) -> list[MessageId]:
    """Return the ids of canceled requests."""
    found = [item.get("params") for item in messages if item.get("method") == "notifications/cancelled"]
    return [item["requestId"] for item in found if isinstance(item, dict) and is_id(item.get("requestId"))]


def change_nothing(messages: list[dict[str, Any]]) -> bool:
    """Return whether all messages may be repeated, even if they were executed."""
    return bool(messages) and all(map(_changes_nothing, messages))


def _changes_nothing(message: dict[str, Any]) -> bool:
    method, params = message.get("method"), message.get("params")
    if method == "tools/call":
        tool = params.get("name") if isinstance(params, dict) else None
        return isinstance(tool, str) and tool in REPEATABLE_TOOLS
    return isinstance(method, str) and method in REPEATABLE_METHODS


def answers_in(line: bytes) -> list[MessageId]:
    """Return the ids of the requests that a line answers."""
    if (found := _ANSWER(line)) is not None:
        return [int(found[1]) if found[1] is not None else found[2].decode()]
    return [item["id"] for item in parse(line) if "method" not in item and is_id(item.get("id"))]


def is_not_begun(line: bytes) -> bool:
    """Return whether an answer reports that nothing was done, because the daemon stops."""
    return line.endswith(_NOT_BEGUN)


def is_id(value: Any) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool)


def error_line(message_id: MessageId | None, words: str, code: int = LOST) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": message_id, "error": {"code": code, "message": words}}).encode() + b"\n"
