"""Metrics of a caller's own session: durations of the recorded requests, and current counts."""

from collections import Counter
from typing import Any

from emceepee.sessions.session import Session
from emceepee.telemetry.spans import Span, SpanKind, SpanStatus
from emceepee.wire.json_types import JsonObject

MOST_ROWS = 50  # kinds and names of requests, sorted by total duration, longest first


def session_metrics(session: Session) -> JsonObject:
    kept = session.journal.spans
    ends = Counter(str(span.status) for span in kept)
    return {
        "requests": {"kept": len(kept), **{str(status): ends[str(status)] for status in SpanStatus}},
        "byName": _rows(kept),
        "callsInFlight": len(session.calls),
        "questionsWaiting": len(session.questions.open()),
        "tasks": dict(Counter(str(task.status) for task in session.tasks.all())),
        "servers": dict(Counter(str(connection.state.status) for connection in session.connections)),
    }


def _rows(kept: list[Span]) -> list[JsonObject]:
    """Return one row per kind and name of the requests that have ended; the others have no duration yet."""
    groups: dict[tuple[SpanKind, str | None, str], list[Span]] = {}
    for span in kept:
        if span.ended is not None:
            groups.setdefault((span.kind, span.server, span.name), []).append(span)
    rows = sorted(((_seconds(spans), key, spans) for key, spans in groups.items()), key=lambda row: -row[0])
    return [_row(*key, spans) for _, key, spans in rows[:MOST_ROWS]]


def _row(kind: SpanKind, server: str | None, name: str, spans: list[Span]) -> JsonObject:
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
