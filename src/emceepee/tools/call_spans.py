"""How a call of a tool shows in the journal of its session."""

from emceepee.json_types import JsonObject
from emceepee.sessions.session import Session
from emceepee.telemetry.redaction import MASK
from emceepee.telemetry.spans import Span, SpanKind
from emceepee.tools.declaration import Tool

# What these tools are for is a request to a backend; the arguments are what that request is about.
_BACKEND_REQUESTS = {
    "execute_tool": (SpanKind.TOOL_CALL, "tool", "args"),
    "read_resource": (SpanKind.RESOURCE_READ, "uri", None),
    "get_prompt": (SpanKind.PROMPT_GET, "name", "arguments"),
}


def begin_span(session: Session, tool: Tool, arguments: JsonObject, parent: Span | None = None) -> Span:
    """The call in its session's journal; `parent` is the request that it is a part of."""
    server = arguments.get("server")
    if tool.name in _BACKEND_REQUESTS:
        kind, about, inner = _BACKEND_REQUESTS[tool.name]
        server = server if isinstance(server, str) else None
        shown = arguments.get(inner) if inner else {}
        given = shown if isinstance(shown, dict) else {}
        name = arguments.get(about)
        return session.journal.begin(kind, name if isinstance(name, str) else "", server, given, parent)
    if tool.private:  # a misspelt name may hold what should be private, too
        public = tool.aliases.own - tool.private
        arguments = {key: value if key in public else MASK for key, value in arguments.items()}
    known = server if isinstance(server, str) and session.has_server(server) else None  # it may also be a pattern
    return session.journal.begin(SpanKind.OWN_TOOL, tool.name, known, arguments, parent)
