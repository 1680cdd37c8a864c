"""The names of the semantic conventions for MCP, and the attributes of a message."""

from emceepee.telemetry.label_values import OTHER
from emceepee.telemetry.redaction import public_start
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import CLIENT_METHODS, HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

METHOD = "mcp.method.name"
PROTOCOL_VERSION = "mcp.protocol.version"
SESSION_ID = "mcp.session.id"
RESOURCE_URI = "mcp.resource.uri"
REQUEST_ID = "jsonrpc.request.id"
STATUS_CODE = "rpc.response.status_code"
ERROR_TYPE = "error.type"
OPERATION = "gen_ai.operation.name"
TOOL = "gen_ai.tool.name"
PROMPT = "gen_ai.prompt.name"
TRANSPORT = "network.transport"
APPLICATION_PROTOCOL = "network.protocol.name"
SERVER_ADDRESS, SERVER_PORT = "server.address", "server.port"
# Our own names, because the conventions have none.
BACKEND, TASK_ID = "emceepee.server", "emceepee.task.id"

EXECUTE_TOOL = "execute_tool"
TOOL_ERROR = "tool_error"
CANCELLED = "cancelled"
UNKNOWN_ERROR = "_OTHER"
PIPE, TCP, UNIX = "pipe", "tcp", "unix"
LONGEST_NAME = 200  # characters of a name that a caller or a server chose

Attributes = dict[str, str | int]


def known_method(method: str) -> str:
    """Return a caller's method if it is known: callers can send any name."""
    return method if method in CLIENT_METHODS else OTHER


def known_version(version: str) -> str:
    return version if version in HANDSHAKE_PROTOCOL_VERSIONS or version in MODERN_PROTOCOL_VERSIONS else OTHER


def subject(method: str, params: JsonObject | None, *, is_there: bool = True) -> tuple[str, Attributes]:
    """Return the name of a request's span and the attributes of its target.

    `is_there`: whether the target exists. Names of nonexistent targets are not reported.
    """
    method = method[:LONGEST_NAME]
    about: Attributes = {METHOD: method}
    given = params or {}
    if method == "tools/call":
        about[OPERATION] = EXECUTE_TOOL
        return _named(method, TOOL, given.get("name"), about, is_there=is_there), about
    if method == "prompts/get":
        return _named(method, PROMPT, given.get("name"), about, is_there=is_there), about
    if method.startswith("resources/") and isinstance(uri := given.get("uri"), str):
        about[RESOURCE_URI] = public_start(uri, LONGEST_NAME)
    return method, about


def _named(method: str, key: str, name: object, about: Attributes, *, is_there: bool) -> str:
    if not is_there:
        about[key] = OTHER
    if not is_there or not isinstance(name, str):
        return method
    about[key] = name[:LONGEST_NAME]
    return f"{method} {name[:LONGEST_NAME]}"
