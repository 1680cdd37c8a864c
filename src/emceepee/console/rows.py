"""Views of requests for people: rows of the waterfall, one request in full, and all requests as one document."""

from collections import Counter
from datetime import datetime, timedelta

from emceepee.clock import epoch_milliseconds, iso
from emceepee.futures import let_others_run
from emceepee.sessions.events.buffers import LogLine
from emceepee.sessions.session import Session
from emceepee.telemetry.redaction import redacted
from emceepee.telemetry.spans import Span, SpanKind
from emceepee.telemetry.value_preview import preview
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

SUMMARY_LENGTH = 200
SHOWN_LINE_BYTES = 16 << 10  # approximate bytes of one log line; get_logs returns it in full
SHOWN_LOG_BYTES = 128 << 10  # of all lines that a server logged during the request
SPANS_AT_ONCE = 20  # per turn of the event loop
SHORTEST_QUEUE = 0.001  # seconds: a shorter one is invisible, and every request has one
_WAITS_FOR_BACKEND = (SpanKind.TOOL_CALL, SpanKind.RESOURCE_READ, SpanKind.PROMPT_GET)
_LOG_SLACK = timedelta(milliseconds=100)  # a server's log line about a call may arrive a little after its answer


def row(span: Span, session: Session) -> JsonObject:
    """Return one row. Times are in milliseconds: the start since the epoch, the phases since the start."""
    started = epoch_milliseconds(span.at)
    optional = {
        "server": span.server,
        "endedAt": None if span.ended is None else started + span.ended * 1000,
        "error": redacted(span.error),
        "taskId": span.task_id,
        "parent": span.parent,
        "progress": redacted(span.progress) if span.progress else None,
    }
    return {
        "id": span.span_id,
        "session": session.session_id,
        "type": str(span.kind),
        "name": redacted(span.name),
        "startedAt": started,
        "status": str(span.status),
        "phases": _phases(span),
    } | {key: value for key, value in optional.items() if value is not None}


def _phases(span: Span) -> list[JsonObject]:
    bars: list[JsonObject] = [
        {"kind": str(phase.kind), "server": phase.server, "from": _ms(phase.began), "to": _ms(phase.ended)}
        for phase in span.phases
    ]
    if span.kind in _WAITS_FOR_BACKEND:
        until = span.phases[0].began if span.phases else span.ended
        if until is None or until >= SHORTEST_QUEUE:
            bars.insert(0, {"kind": "queued", "from": 0.0, "to": _ms(until)})
    return bars


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 3)


def detail(span: Span, session: Session) -> JsonObject:
    """Return all stored data of one request, with secrets masked. Very long logs are cut to their end."""
    logs: list[JsonObject] = []
    room, lines = SHOWN_LOG_BYTES, _lines_of(span, session)
    while lines and room > 0:
        line, is_sure = lines.pop()
        logs.append(log_view(line, session) | ({} if is_sure else {"isUnsure": True}))
        room -= len(encode(logs[-1]))
    return {
        "request": row(span, session),
        "args": redacted(span.arguments),
        "result": redacted(span.result),
        "isCut": span.is_cut or bool(lines),
        "logs": logs[::-1],
    }


def _lines_of(span: Span, session: Session) -> list[tuple[LogLine, bool]]:
    """Return the server's log lines for the request, each with whether the match is certain.

    Over HTTP, the stream identifies the request of a line. Any other line may belong to each request that runs when it
    arrives. The match is certain if only one request runs.
    """
    others = [each for each in session.journal.spans if each.server == span.server and each.phases and each is not span]
    found: list[tuple[LogLine, bool]] = []
    for buffers in session.buffers_of(None):
        for line in buffers.tail if buffers.server == span.server else ():
            if line.request is not None:
                if line.request == span.number:
                    found.append((line, True))
            elif _ran_at(span, line.at):
                found.append((line, not any(_ran_at(other, line.at) for other in others)))
    return found


def _ran_at(span: Span, moment: datetime) -> bool:
    until = span.at + timedelta(seconds=span.elapsed() if span.ended is None else span.ended)
    return span.at <= moment <= until + _LOG_SLACK


def log_view(line: LogLine, session: Session) -> JsonObject:
    view: JsonObject = {
        "session": session.session_id,
        "server": line.server,
        "timestamp": iso(line.at),
        "level": str(line.level),
        "source": str(line.source),
        "data": redacted(preview(line.data, SHOWN_LINE_BYTES)[0]),  # cut before masking, which takes long
    }
    return view if line.logger is None else view | {"logger": line.logger}


async def waterfall(sessions: list[Session], now: str) -> JsonObject:
    """Return all stored requests by session. It yields to the event loop between batches."""
    by_session = {session.session_id: session.journal.since(0) for session in sessions}
    spans = [span for of_session in by_session.values() for span in of_session]
    documents: dict[str, list[JsonObject]] = {session_id: [] for session_id in by_session}
    for session_id, of_session in by_session.items():
        for number, span in enumerate(of_session, 1):
            documents[session_id].append(_document(span, session_id))
            if number % SPANS_AT_ONCE == 0:
                await let_others_run()
    return {
        "stats": {
            "totalRequests": len(spans),
            "sessionCount": len(sessions),
            "byStatus": dict(Counter(str(span.status) for span in spans)),
            "byType": dict(Counter(str(span.kind) for span in spans)),
        },
        "sessions": documents,
        "generatedAt": now,
    }


def joined_waterfall(own: JsonObject, others: list[JsonObject]) -> JsonObject:
    """Merge the documents of other replicas. A session that moved during the query may be in two of them."""
    sessions: dict[str, list[JsonObject]] = {}
    for document in (own, *others):
        for session_id, requests in document["sessions"].items():
            sessions.setdefault(session_id, []).extend(requests)
    rows = [row for requests in sessions.values() for row in requests]
    stats = {
        "totalRequests": len(rows),
        "sessionCount": len(sessions),
        "byStatus": dict(Counter(row["status"] for row in rows)),
        "byType": dict(Counter(row["type"] for row in rows)),
    }
    return own | {"stats": stats, "sessions": sessions}


def _document(span: Span, session_id: str) -> JsonObject:
    optional = {
        "server": span.server,
        "args": redacted(span.arguments) or None,
        "endedAt": None if span.ended is None else iso(span.at + timedelta(seconds=span.ended)),
        "durationMs": _ms(span.ended),
        "error": redacted(span.error),
        "taskId": span.task_id,
        "parentId": span.parent,
        "resultSummary": _summary(span),
    }
    return {
        "requestId": span.span_id,
        "sessionId": session_id,
        "type": str(span.kind),
        "name": redacted(span.name),
        "startedAt": iso(span.at),
        "status": str(span.status),
    } | {key: value for key, value in optional.items() if value is not None}


def _summary(span: Span) -> str | None:
    content = span.result.get("content") if isinstance(span.result, dict) else None
    texts = [str(block.get("text", "")) for block in content or () if isinstance(block, dict)]
    return redacted(" ".join(texts))[:SUMMARY_LENGTH] if texts else None
