"""How a backend says that it no longer knows our session.

Whoever reads "session lost" sends the request again, so it has to be certain that it did not run. Words prove nothing:
a tool may well speak of sessions. Only the status that the specification gives counts, and what known servers say,
letter by letter, before they look at the request.
"""

NOT_FOUND = 404
BAD_REQUEST = 400
_KNOWN_WORDS = frozenset(
    {
        "Bad Request: No valid session ID provided",  # server-everything, TypeScript examples, Python SDK up to 1.24
        "Bad Request: No valid session ID",  # TypeScript examples
        "Invalid or missing session ID",  # TypeScript examples
        "Bad Request: Server not initialized",  # TypeScript SDK, whose one transport began anew
        "Invalid session ID",  # mcp-go
        "Session not found",  # Python and TypeScript SDK
        "Not Found: Session has been terminated",  # Python SDK
        "Not Found: Invalid or expired session ID",  # Python SDK
    }
)


def says_session_lost(words: str) -> bool:
    return words.strip() in _KNOWN_WORDS


def status_says_session_lost(status: int, words: str) -> bool:
    """Of a whole response with an error status, to a request that carried a session id."""
    return status == NOT_FOUND or (status == BAD_REQUEST and says_session_lost(words))
