"""Contexts of requests that came by no transport, and the tools that every test calls."""

from collections.abc import Callable

from emceepee.server.dispatch import Tools
from emceepee.sessions.session import Session
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import Request
from emceepee.wire.json_types import JsonObject

ALL_TOOLS = Tools(TOOLS)
TOKEN = "t"


async def call_tool(params: JsonObject | None, session: Session, context: RequestContext | None = None) -> JsonObject:
    """One `tools/call` in that session."""
    context = context or RequestContext()
    context.session = session
    return await ALL_TOOLS.call(params, context)


class _Progress:
    """A channel that passes on progress."""

    is_gone = False

    def __init__(self, record: Callable[[JsonObject], object]) -> None:
        self._record = record

    def send(self, message: JsonObject) -> None:
        assert message["method"] == "notifications/progress"
        params = dict(message["params"])
        assert params.pop("progressToken") == TOKEN
        self._record(params)


def asking_for_progress(record: Callable[[JsonObject], object] = lambda params: None) -> RequestContext:
    """Of a caller that gave a progress token; `record` gets what comes back, without the token."""
    return RequestContext(Request(1, "tools/call", {"_meta": {"progressToken": TOKEN}}), channel=_Progress(record))
