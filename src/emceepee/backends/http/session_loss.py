"""Detects that a backend has lost our session.

After a "session lost" error the request is sent again, so it must be certain that the request did not run. Free text
proves nothing, because a tool's message may mention sessions. Only two signals count: the status that the specification
defines, and the exact messages that known servers send before they process the request.
"""

from emceepee.backends.links.client_messages import names_none
from emceepee.wire.json_types import JsonObject

NOT_FOUND = 404
BAD_REQUEST = 400
SESSION_NOT_FOUND = -32001  # the JSON-RPC code that the official SDKs use
_KNOWN_WORDS = frozenset(
    {
        "Bad Request: No valid session ID provided",  # server-everything, TypeScript examples, Python SDK up to 1.24
        "Bad Request: No valid session ID",  # TypeScript examples
        "Invalid or missing session ID",  # TypeScript examples
        "Bad Request: Server not initialized",  # TypeScript SDK whose only transport has restarted
        "Invalid session ID",  # mcp-go
        "Session not found",  # Python and TypeScript SDK
        "Not Found: Session has been terminated",  # Python SDK
        "Not Found: Invalid or expired session ID",  # Python SDK
    }
)


def says_session_lost(words: str) -> bool:
    return words.strip() in _KNOWN_WORDS


def status_says_session_lost(status: int, words: str, message: JsonObject | None) -> bool:
    """Judge a complete response with an error status, to a request that carried a session id.

    A 404 without a JSON-RPC message is the specification's own signal. A 404 with a JSON-RPC message may be the error
    of a tool that ran. It counts only if it has the exact text of a known server, or the SDKs' code and no request id.
    """
    if says_session_lost(words):
        return status in (NOT_FOUND, BAD_REQUEST)
    return status == NOT_FOUND and (message is None or _has_code_of_sdks(message))


def _has_code_of_sdks(message: JsonObject) -> bool:
    error = message.get("error")
    return isinstance(error, dict) and error.get("code") == SESSION_NOT_FOUND and names_none(message.get("id"))
