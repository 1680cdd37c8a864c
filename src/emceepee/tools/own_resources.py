"""emceepee's own resources: state diagrams, generated from the transition tables, and metrics of a session."""

from collections import Counter
from collections.abc import Callable
from typing import Any

from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.sessions.session import Session
from emceepee.state.diagrams import diagrams
from emceepee.surface import call_to
from emceepee.telemetry.spans import Span, SpanKind, SpanStatus
from emceepee.wire.codec import encode_text
from emceepee.wire.json_types import JsonObject

DIAGRAMS_URI = "emceepee://diagrams"
EVENTS_URI = "emceepee://events"
METRICS_URI = "emceepee://metrics"
MOST_ROWS = 50  # kinds and names of requests, sorted by total duration, longest first
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


def session_metrics(session: Session) -> JsonObject:
    """Return metrics of the caller's own session: durations of the recorded requests, and current counts."""
    kept = session.journal.spans
    ends = Counter(str(span.status) for span in kept)
    return {
        "requests": {"kept": len(kept), **{str(status): ends[str(status)] for status in SpanStatus}},
        "byName": _metric_rows(kept),
        "callsInFlight": len(session.calls),
        "questionsWaiting": len(session.questions.open()),
        "tasks": dict(Counter(str(task.status) for task in session.tasks.all())),
        "servers": dict(Counter(str(connection.state.status) for connection in session.connections)),
    }


def _metric_rows(kept: list[Span]) -> list[JsonObject]:
    """Return one row per kind and name of the requests that have ended; the others have no duration yet."""
    groups: dict[tuple[SpanKind, str | None, str], list[Span]] = {}
    for span in kept:
        if span.ended is not None:
            groups.setdefault((span.kind, span.server, span.name), []).append(span)
    rows = sorted(((_seconds(spans), key, spans) for key, spans in groups.items()), key=lambda row: -row[0])
    return [_metric_row(*key, spans) for _, key, spans in rows[:MOST_ROWS]]


def _metric_row(kind: SpanKind, server: str | None, name: str, spans: list[Span]) -> JsonObject:
    row: dict[str, Any] = {"kind": str(kind), "name": name}
    if server is not None:
        row["server"] = server
    return row | {
        "count": len(spans),
        "errors": sum(span.status is SpanStatus.ERROR for span in spans),
        "meanMs": round(_seconds(spans) / len(spans) * 1000, 1),
        "slowestMs": round(max(span.ended or 0.0 for span in spans) * 1000, 1),
    }


def _seconds(spans: list[Span]) -> float:
    return sum(span.ended or 0.0 for span in spans)


_CONTENTS: dict[str, Callable[[Session | None], JsonObject]] = {
    DIAGRAMS_URI: _diagrams,
    EVENTS_URI: _events,
    METRICS_URI: _metrics,
}
