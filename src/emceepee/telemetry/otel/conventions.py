"""The names of the semantic conventions for MCP, and what of a message they are about."""

from emceepee.json_types import JsonObject
from emceepee.telemetry.redaction import public_url

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
# For what the conventions have no name.
BACKEND, TASK_ID = "emceepee.server", "emceepee.task.id"

EXECUTE_TOOL = "execute_tool"
TOOL_ERROR = "tool_error"
CANCELLED = "cancelled"
UNKNOWN_ERROR = "_OTHER"
PIPE, TCP = "pipe", "tcp"
LONGEST_NAME = 200  # characters of a name that a caller or a server chose

Attributes = dict[str, str | int]


def subject(method: str, params: JsonObject | None) -> tuple[str, Attributes]:
    """The name of the span of a request, and the attributes that say what it is about."""
    method = method[:LONGEST_NAME]
    about: Attributes = {METHOD: method}
    given = params or {}
    if method == "tools/call":
        about[OPERATION] = EXECUTE_TOOL
        return _named(method, TOOL, given.get("name"), about), about
    if method == "prompts/get":
        return _named(method, PROMPT, given.get("name"), about), about
    if method.startswith("resources/") and isinstance(uri := given.get("uri"), str):
        about[RESOURCE_URI] = public_url(uri[: 4 * LONGEST_NAME])[:LONGEST_NAME]
    return method, about


def _named(method: str, key: str, name: object, about: Attributes) -> str:
    if not isinstance(name, str):
        return method
    about[key] = name[:LONGEST_NAME]
    return f"{method} {name[:LONGEST_NAME]}"
