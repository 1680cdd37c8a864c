"""emceepee's own resources: diagrams drawn from the tables that guard the code, and figures of a session."""

from collections.abc import Callable

from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.sessions.session import Session
from emceepee.state.diagrams import diagrams
from emceepee.surface import call_to
from emceepee.tools.own_metrics import session_metrics
from emceepee.wire.codec import encode_text
from emceepee.wire.json_types import JsonObject

DIAGRAMS_URI = "emceepee://diagrams"
EVENTS_URI = "emceepee://events"
METRICS_URI = "emceepee://metrics"
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
    {
        "uri": METRICS_URI,
        "name": "metrics",
        "description": "Figures of this session: its newest requests by name, calls, tasks, questions, servers",
        "mimeType": _MIME,
    },
]


def read_own_resource(uri: str, session: Session | None) -> JsonObject:
    """Return the contents of a resource, from the reader's `session`. Raises: EmceepeeError."""
    check_own_resource(uri)
    return {"contents": [{"uri": uri, "mimeType": _MIME, "text": encode_text(_CONTENTS[uri](session))}]}


def check_own_resource(uri: str) -> None:
    """Raises: EmceepeeError."""
    if uri not in _CONTENTS:
        raise EmceepeeError(
            f"emceepee has no resource {uri[:100]!r}. It has {', '.join(_CONTENTS)}.", code=ErrorCode.INVALID_ARGUMENTS
        )


def _diagrams(_: Session | None) -> JsonObject:
    return {"diagrams": diagrams()}


def _events(_: Session | None) -> JsonObject:
    return {"note": f"Reading delivers nothing: call {call_to('await_activity')}, or look at any reply."}


def _metrics(session: Session | None) -> JsonObject:
    if session is None:
        return {
            "note": f"This request belongs to no session. Read it with {call_to('read_resource')}, which takes one."
        }
    return session_metrics(session)


_CONTENTS: dict[str, Callable[[Session | None], JsonObject]] = {
    DIAGRAMS_URI: _diagrams,
    EVENTS_URI: _events,
    METRICS_URI: _metrics,
}
