"""How a caller's request shows in its session's journal."""

from collections.abc import Iterator
from contextlib import contextmanager

from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.telemetry.redaction import MASK
from emceepee.telemetry.spans import Span, SpanKind
from emceepee.tools.declaration import Tool

# What these tools are for is a request of a backend; the argument is what that request is about.
_BACKEND_REQUESTS = {
    "execute_tool": (SpanKind.TOOL_CALL, "tool", "args"),
    "read_resource": (SpanKind.RESOURCE_READ, "uri", None),
    "get_prompt": (SpanKind.PROMPT_GET, "name", "arguments"),
}


def begin_tool_span(session: Session, tool: Tool, arguments: JsonObject) -> Span:
    """A tool was called."""
    server = arguments.get("server")
    if tool.name in _BACKEND_REQUESTS:
        kind, about, inner = _BACKEND_REQUESTS[tool.name]
        server = server if isinstance(server, str) else None
        shown = arguments.get(inner) if inner else {}
        given = shown if isinstance(shown, dict) else {}
        name = arguments.get(about)
        return session.journal.begin(kind, name if isinstance(name, str) else "", server, given)
    if tool.private:  # a misspelt name may hold what should be private, too
        public = tool.aliases.own - tool.private
        arguments = {key: value if key in public else MASK for key, value in arguments.items()}
    known = server if isinstance(server, str) and session.has_server(server) else None  # it may also be a pattern
    return session.journal.begin(SpanKind.OWN_TOOL, tool.name, known, arguments)


@contextmanager
def protocol_span(session: Session, method: str) -> Iterator[None]:
    """Any other request of the protocol."""
    span = session.journal.begin(SpanKind.PROTOCOL, method, None, {})
    try:
        yield
    except Exception as error:
        span.failed(str(error))
        raise
    except BaseException:
        span.cancelled()
        raise
    span.replied({})
