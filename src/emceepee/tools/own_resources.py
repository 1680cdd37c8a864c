"""emceepee's own resources: diagrams drawn from the tables that guard the code."""

from collections.abc import Callable

from emceepee.codec import encode_text
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.json_types import JsonObject
from emceepee.state.diagrams import diagrams
from emceepee.surface import call_to

DIAGRAMS_URI = "emceepee://diagrams"
EVENTS_URI = "emceepee://events"
_MIME = "application/json"

LISTED: list[JsonObject] = [
    {
        "uri": DIAGRAMS_URI,
        "name": "diagrams",
        "description": "State diagrams of tasks, questions and calls, as Mermaid",
        "mimeType": _MIME,
    },
    {
        "uri": EVENTS_URI,
        "name": "events",
        "description": "Subscribe to hear that something happened; await_activity tells what",
        "mimeType": _MIME,
    },
]


def read_own_resource(uri: str) -> JsonObject:
    """Raises: EmceepeeError."""
    check_own_resource(uri)
    return {"contents": [{"uri": uri, "mimeType": _MIME, "text": encode_text(_CONTENTS[uri]())}]}


def check_own_resource(uri: str) -> None:
    """Raises: EmceepeeError."""
    if uri not in _CONTENTS:
        raise EmceepeeError(
            f"emceepee has no resource {uri[:100]!r}. It has {', '.join(_CONTENTS)}.", code=ErrorCode.INVALID_ARGUMENTS
        )


def _diagrams() -> JsonObject:
    return {"diagrams": diagrams()}


def _events() -> JsonObject:
    return {"note": f"Reading delivers nothing: call {call_to('await_activity')}, or look at any reply."}


_CONTENTS: dict[str, Callable[[], JsonObject]] = {DIAGRAMS_URI: _diagrams, EVENTS_URI: _events}
