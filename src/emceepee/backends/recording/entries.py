"""The format of a recording: JSON lines, with a header in the first line."""

from enum import StrEnum
from typing import Any

from emceepee.wire.json_types import JsonObject

HEADER_KEY = "emceepee_recording"
VERSION = 1
LONGEST_TEXT = 300  # characters of a reason


class EntryKind(StrEnum):
    """The type of a line."""

    OPENED = "opened"
    """A connection opened; contains the server's description of itself."""
    REQUEST = "request"
    """A request of emceepee."""
    RESULT = "result"
    """The result of the request with that id."""
    ERROR = "error"
    """The server's error response to the request with that id."""
    FAILED = "failed"
    """The reason why no answer arrived."""
    CANCELLED = "cancelled"
    """The caller stopped waiting for the answer."""
    NOTIFICATION = "notification"
    """A notification of the server; `during` is the request that it arrived with."""
    QUESTION = "question"
    """A request of the server."""
    ANSWER = "answer"
    """The answer to the server's request with that id."""
    CLOSED = "closed"
    """The connection was closed; contains the reason."""
    CUT = "cut"
    """The recording ends here; contains the reason."""


def header(server: str, target: str, recorded_at: str, program: str) -> JsonObject:
    return {
        HEADER_KEY: VERSION,
        "server": server,
        "target": target,
        "recorded_at": recorded_at,
        "recorded_by": program,
    }


def is_header(value: Any) -> bool:
    return isinstance(value, dict) and HEADER_KEY in value
