"""`emceepee` with a few more tools, by which the conformance suite reaches into the transport.

The suite looks for these tools by name. They do what only a tool can make a server do: ask for a capability, end a
stream early, log, change a list. Everything else that answers here is the product, and takes its options.
"""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from mcp.shared.inbound import validate_mcp_param_headers

from emceepee.app import http_app
from emceepee.cli.main import main
from emceepee.server.dispatch import Tools
from emceepee.server.http.exchange import Exchange
from emceepee.server.http.http_endpoint import HttpEndpoint, HttpParts
from emceepee.server.listen_requests import PROMPTS_CHANGED, TOOLS_CHANGED, ListChange, listen
from emceepee.server.params import ListenParams, PageParams, RequestParams
from emceepee.server.protocol_methods import Method, MethodRequest, ProtocolMethods
from emceepee.sessions.session import Session
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.declaration import Params as ToolParams
from emceepee.tools.declaration.declaration import Tool
from emceepee.tools.request_context import RequestContext
from emceepee.web.asgi import Receive, Scope, Send, read_body, respond_json
from emceepee.wire.codec import decode
from emceepee.wire.json_rpc import ProtocolError, Request, classify, error_message, notification_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import MISSING_CLIENT_CAPABILITY
from support.programs.conformance_bus import BUS_VARIABLE, SharedBus

META = "io.modelcontextprotocol/"
NOTHING: JsonObject = {"type": "object", "properties": {}}
REGION = {"type": "string", "description": "Repeated in a header", "x-mcp-header": "Region"}
Fixture = Callable[[JsonObject, RequestContext], Awaitable[JsonObject]]


def said(text: str) -> JsonObject:
    return {"content": [{"type": "text", "text": text}]}


class Fixtures(Tools):
    """The product's tools and the suite's."""

    def __init__(self, bus: SharedBus) -> None:
        super().__init__(TOOLS)
        self._bus = bus
        self._fixtures: dict[str, tuple[Fixture, JsonObject]] = {
            "test_missing_capability": (self._need_sampling, NOTHING),
            "test_streaming_elicitation": (self._ask, NOTHING),
            "test_logging_tool": (self._log, NOTHING),
            "test_reconnection": (self._hang_up, NOTHING),
            "test_x_mcp_header": (self._name_region, {"type": "object", "properties": {"region": REGION}}),
            "test_trigger_tool_change": (self._changing(TOOLS_CHANGED), NOTHING),
            "test_trigger_prompt_change": (self._changing(PROMPTS_CHANGED), NOTHING),
        }

    def listed(self) -> list[Tool]:
        async def unused(params: Any, session: Session, context: RequestContext) -> JsonObject:
            raise AssertionError("fixtures are served by `call`, before any session is looked for")

        fixtures = [
            Tool(
                name=name,
                title=name,
                description="For the conformance suite.",
                params=ToolParams,
                input_schema=schema,
                run=unused,
                needs_session=False,
            )
            for name, (_, schema) in self._fixtures.items()
        ]
        return [*TOOLS, *fixtures]

    def schema(self, name: object) -> JsonObject | None:
        """Of a fixture."""
        return self._fixtures[name][1] if isinstance(name, str) and name in self._fixtures else None

    async def call(self, params: JsonObject | None, context: RequestContext) -> JsonObject:
        known = self._fixtures.get(str((params or {}).get("name")))
        return await (known[0](params or {}, context) if known else super().call(params, context))

    async def _need_sampling(self, params: JsonObject, context: RequestContext) -> JsonObject:
        if "sampling" not in params.get("_meta", {}).get(META + "clientCapabilities", {}):
            required: JsonObject = {"requiredCapabilities": {"sampling": {}}}
            raise ProtocolError(MISSING_CLIENT_CAPABILITY, "This tool needs the sampling capability.", required)
        return said("It is there.")

    async def _ask(self, params: JsonObject, context: RequestContext) -> JsonObject:
        form = {"type": "object", "properties": {"name": {"type": "string"}}}
        question = {"mode": "form", "message": "Your name?", "requestedSchema": form}
        asked = {"name": {"method": "elicitation/create", "params": question}}
        return {"resultType": "input_required", "inputRequests": asked, "requestState": "asked"}

    async def _log(self, params: JsonObject, context: RequestContext) -> JsonObject:
        level = params.get("_meta", {}).get(META + "logLevel")
        if level is not None:
            context.channel.send(notification_message("notifications/message", {"level": "info", "data": "logged"}))
        return said("Logged, if that was wanted.")

    async def _hang_up(self, params: JsonObject, context: RequestContext) -> JsonObject:
        """End the response but not the request: the caller comes back for the rest."""
        exchange = context.channel
        if isinstance(exchange, Exchange):
            exchange._open_stream()
            await asyncio.sleep(0.1)  # until the first event is written, with the id to come back with
            exchange._replay.stop_reader(exchange._stream)
        await asyncio.sleep(0.3)  # the suite wants to see the stream end before the answer is there
        return said("You came back.")

    async def _name_region(self, params: JsonObject, context: RequestContext) -> JsonObject:
        return said(f"Region: {params.get('arguments', {}).get('region')}")

    def _changing(self, event: ListChange) -> Fixture:
        async def change(params: JsonObject, context: RequestContext) -> JsonObject:
            self._bus.publish(event)
            return said("Changed.")

        return change


class MirroringEndpoint(HttpEndpoint):
    """Checks headers that repeat arguments, which emceepee's own tools never ask for."""

    def __init__(self, parts: HttpParts) -> None:
        super().__init__(parts)
        assert isinstance(parts.tools, Fixtures)
        self._fixtures, self._most = parts.tools, parts.body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "POST":
            await super().__call__(scope, receive, send)
            return
        body = await read_body(receive, self._most)
        if (refusal := self._refusal(scope, body)) is not None:
            await respond_json(send, 400, refusal)
            return
        parts = [{"type": "http.request", "body": body}]

        async def receive_again() -> JsonObject:
            return parts.pop() if parts else await receive()

        await super().__call__(scope, receive_again, send)

    def _refusal(self, scope: Scope, body: bytes) -> JsonObject | None:
        try:
            message = classify(decode(body))
        except ValueError:
            return None
        if not isinstance(message, Request) or message.method != "tools/call":
            return None
        params = message.params or {}
        schema, arguments = self._fixtures.schema(params.get("name")), params.get("arguments")
        if schema is None:
            return None
        headers = {name.decode("latin-1"): text.decode("latin-1").strip() for name, text in scope["headers"]}
        why = validate_mcp_param_headers(schema, arguments if isinstance(arguments, dict) else {}, headers)
        return None if why is None else error_message(message.request_id, why.code, why.message, why.data)


class FixtureMethods(ProtocolMethods):
    """Has prompts, of which there are none, and tells of changes that the suite's tools make."""

    def __init__(self, tools: list[Tool], bus: SharedBus) -> None:
        super().__init__(tools)

        async def hear(asked: MethodRequest, params: ListenParams) -> JsonObject:
            return await listen(bus, params.notifications, asked.context)

        async def no_prompts(asked: MethodRequest, params: PageParams) -> JsonObject:
            return {"prompts": []}

        async def discover(asked: MethodRequest, params: RequestParams) -> JsonObject:
            found, changing = await self._discover(asked, params), {"listChanged": True}
            return found | {"capabilities": found["capabilities"] | {"tools": changing, "prompts": changing}}

        self.methods["subscriptions/listen"] = Method(ListenParams, hear, in_handshake=False)
        marks = self.methods["tools/list"].marks
        self.methods["server/discover"] = Method(RequestParams, discover, in_handshake=False, marks=marks)
        self.methods["prompts/list"] = Method(PageParams, no_prompts, marks=marks)

    def capabilities(self) -> JsonObject:
        return {**super().capabilities(), "prompts": {"listChanged": False}}


def with_fixtures(made: HttpParts) -> HttpParts:
    bus = SharedBus(os.environ.get(BUS_VARIABLE))
    tools = Fixtures(bus)
    return replace(made, methods=FixtureMethods(tools.listed(), bus), tools=tools)


if __name__ == "__main__":
    make_parts = http_app.http_parts
    vars(http_app).update(
        http_parts=lambda *args, **named: with_fixtures(make_parts(*args, **named)), HttpEndpoint=MirroringEndpoint
    )
    sys.exit(main())
