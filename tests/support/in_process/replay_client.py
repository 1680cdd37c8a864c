"""A replayed recording over HTTP without a socket: a client of either era, who can hang up at any moment."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from emceepee.clock import Clock, SystemClock
from emceepee.guard.access_control import AccessControl, AccessRules
from emceepee.replay.recording import Recording
from emceepee.replay.replay_endpoint import ReplayEndpoint
from emceepee.replay.replayed_conversation import ReplayedConversation
from emceepee.wire.json_types import JsonObject
from support.callers.http_process import HELLO, HttpCaller, ModernCaller
from support.in_process.asgi_caller import AsgiRequest

CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


class HttpReplayClient:
    """A client that declares these `capabilities`."""

    def __init__(self, endpoint: ReplayEndpoint, *, is_modern: bool = False, **capabilities: Any) -> None:
        self._endpoint, self._is_modern, self._capabilities = endpoint, is_modern, capabilities
        no_process: Any = None  # it only makes messages and headers for us
        self._words = (ModernCaller if is_modern else HttpCaller)(no_process, {})

    async def open(self, version: str = "2025-11-25") -> "HttpReplayClient":
        """With a session, where there are such."""
        if not self._is_modern:
            hello = HELLO | {"capabilities": self._capabilities, "protocolVersion": version}
            answered = (await self.post("initialize", hello).served()).answered
            self._words.headers["mcp-session-id"] = answered.headers["mcp-session-id"]
            self._words.headers["mcp-protocol-version"] = version
        return self

    def post(self, method: str, params: JsonObject | None = None, *, key: Any = None, **headers: str) -> AsgiRequest:
        params = dict(params or {})
        if self._is_modern:
            params["_meta"] = {CAPABILITIES: self._capabilities, **params.get("_meta", {})}
        return self.send(self._words.message(method, params, key), **headers)

    def send(self, message: Any, **headers: str) -> AsgiRequest:
        sent = self._words.sent_headers(message) | headers
        return AsgiRequest(self._endpoint, "POST", sent, json.dumps(message).encode())

    def call(self, tool: str, /, *, token: Any = None, key: Any = None, **arguments: Any) -> AsgiRequest:
        meta = {} if token is None else {"_meta": {"progressToken": token}}
        return self.post("tools/call", {"name": tool, "arguments": arguments, **meta}, key=key)

    async def text(self, tool: str, /, **arguments: Any) -> str:
        """Return the text of a call's result."""
        message = (await self.call(tool, **arguments).served()).message
        return str(message["result"]["content"][0]["text"])

    async def tell(self, message: JsonObject) -> None:
        """Something that is not answered."""
        assert (await self.send({"jsonrpc": "2.0", **message}).served()).answered.status == 202

    def raw(self, method: str, body: bytes = b"", *, path: str = "/mcp", **headers: str) -> AsgiRequest:
        """With the headers of the session, and any others."""
        return AsgiRequest(self._endpoint, method, self._words.headers | headers, body, path)

    def listen(self, last_event_id: str | None = None) -> AsgiRequest:
        """Read what belongs to no request, or take a stream up again."""
        last: dict[str, Any] = {} if last_event_id is None else {"last-event-id": last_event_id}
        return self.raw("GET", **last)


@asynccontextmanager
async def a_replay_endpoint(
    played: Recording, clock: Clock | None = None, *, says: Callable[[str], None] = lambda _: None
) -> AsyncIterator[ReplayEndpoint]:
    """With a `clock`, everything takes the time that it took."""
    used = clock or SystemClock()

    def converse() -> ReplayedConversation:
        return ReplayedConversation(played, used, is_instant=clock is None, says=says)

    endpoint = ReplayEndpoint(converse, used, AccessControl(AccessRules()))
    try:
        yield endpoint
    finally:
        await endpoint.close()
