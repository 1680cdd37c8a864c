"""The MCP constants that emceepee uses: versions, error codes, keys in `_meta`, and HTTP headers.

The SDK has the same constants, but loading it takes half a second and 40 MB, so only tests load it and compare.
"""

import base64
import re

JSONRPC_VERSION = "2.0"

HANDSHAKE_PROTOCOL_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")  # begin with `initialize`
LATEST_HANDSHAKE_VERSION = HANDSHAKE_PROTOCOL_VERSIONS[-1]
MODERN_PROTOCOL_VERSIONS = ("2026-07-28",)  # every request carries all information about its client
LATEST_MODERN_VERSION = MODERN_PROTOCOL_VERSIONS[-1]
# Methods that callers can use in any version, whether or not emceepee serves them.
CLIENT_METHODS = frozenset(
    (
        *("initialize", "ping", "server/discover", "subscriptions/listen", "completion/complete", "logging/setLevel"),
        *("tools/list", "tools/call", "prompts/list", "prompts/get", "resources/list", "resources/templates/list"),
        *("resources/read", "resources/subscribe", "resources/unsubscribe"),
        *("tasks/list", "tasks/get", "tasks/result", "tasks/update", "tasks/cancel"),
    )
)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
REQUEST_TIMEOUT = -32001
HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022
URL_ELICITATION_REQUIRED = -32042  # of 2025-11-25

PROTOCOL_VERSION_META_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_INFO_META_KEY = "io.modelcontextprotocol/clientInfo"
CLIENT_CAPABILITIES_META_KEY = "io.modelcontextprotocol/clientCapabilities"
LOG_LEVEL_META_KEY = "io.modelcontextprotocol/logLevel"
SERVER_INFO_META_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_ID_META_KEY = "io.modelcontextprotocol/subscriptionId"

VERSION_HEADER = "mcp-protocol-version"
METHOD_HEADER = "mcp-method"
NAME_HEADER = "mcp-name"
PARAM_HEADER_PREFIX = "Mcp-Param-"
NAMED_BY = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}  # the parameter in the name header

RESOURCE_PATH = "/.well-known/oauth-protected-resource"  # the path of the metadata that names the authorization servers

_PLAIN = re.compile(r"[\x20-\x7e]*")
_WRAPPED = re.compile(r"=\?base64\?(.*)\?=")


def header_value(text: str) -> str:
    """Return the text as a header value: unchanged, or encoded if it would not survive as a header."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{_base64(text)}?="


def text_of_header(value: str | None) -> str | None:
    """Decode a header value; None if it is missing or its encoding is not canonical."""
    wrapped = None if value is None else _WRAPPED.fullmatch(value)
    if wrapped is None:
        return value
    try:
        text = base64.b64decode(wrapped[1], validate=True).decode()
    except ValueError:  # invalid base64 or UTF-8
        return None
    return text if _base64(text) == wrapped[1] else None


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode("ascii")
