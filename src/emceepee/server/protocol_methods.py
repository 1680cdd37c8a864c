"""Answers all requests except tool calls: handshake, discovery, lists, own resources, ping. See decision 36."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec import ValidationError

from emceepee import __version__
from emceepee.backends.spec import BackendSpec
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.server.events_feed import EventsFeed
from emceepee.server.instructions import instructions
from emceepee.server.listen_requests import LISTEN, listen
from emceepee.server.params import (
    InitializeParams,
    ListenParams,
    P,
    PageParams,
    RequestParams,
    ResourceParams,
    check_envelope,
    read,
)
from emceepee.surface import Surface, call_to, current_surface, order_of_listing
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.aliases import SESSION_ARGUMENT
from emceepee.tools.declaration.declaration import Tool
from emceepee.tools.own_resources import EVENTS_URI, LISTED, read_own_resource
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import ProtocolError, Request
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import (
    HANDSHAKE_PROTOCOL_VERSIONS,
    INVALID_PARAMS,
    LATEST_HANDSHAKE_VERSION,
    METHOD_NOT_FOUND,
    MODERN_PROTOCOL_VERSIONS,
)

SERVER_INFO: JsonObject = {"name": "emceepee", "title": "emceepee", "version": __version__}
# Only tools that a model sees first describe it: repeated in each tool, the text would cost a kilobyte.
_SESSION: JsonObject = {"description": "Handle", "type": "string"}
_SESSION_AGAIN: JsonObject = {"type": "string"}
# Clients must not cache results: a list depends on the caller, and may have other tools after a restart.
_UNCACHEABLE: JsonObject = {"ttlMs": 0, "cacheScope": "private"}


@dataclass(frozen=True, slots=True)
class MethodRequest:
    """A request, the event feed of its caller, and its era."""

    context: RequestContext
    feed: EventsFeed
    is_modern: bool


@dataclass(frozen=True, slots=True)
class Method:
    """A method that callers can request, in one era or in both."""

    params: type[RequestParams]
    answer: Callable[[MethodRequest, Any], Awaitable[JsonObject]]
    in_handshake: bool = True
    in_modern: bool = True
    marks: JsonObject | None = None  # additional keys of a 2026-07-28 result


class ProtocolMethods:
    """One for the whole process, without the state of any caller. Its answers match the request's surface."""

    def __init__(
        self, tools: Iterable[Tool] = TOOLS, *, servers: Iterable[BackendSpec] = (), takes_handles: bool = True
    ) -> None:
        """`takes_handles`: whether callers of 2026-07-28 can name a session in each call. False if the connection
        itself is the session."""
        self.servers: Sequence[BackendSpec] = tuple(servers)  # the servers that the instructions name from now on
        self._tools, self._takes_handles = {tool.name: tool for tool in tools}, takes_handles
        self._listed = cache(self._list_result)
        kept = _UNCACHEABLE
        self.methods = {
            "ping": Method(RequestParams, _ping, in_modern=False),
            "server/discover": Method(RequestParams, self._discover, in_handshake=False, marks=kept),
            "tools/list": Method(PageParams, self._list_tools, marks=kept),
            "resources/list": Method(PageParams, _list_resources, marks=kept),
            "resources/templates/list": Method(PageParams, _list_templates, marks=kept),
            "resources/read": Method(ResourceParams, _read_resource, marks=kept),
            "resources/subscribe": Method(ResourceParams, _subscribe, in_modern=False),
            "resources/unsubscribe": Method(ResourceParams, _unsubscribe, in_modern=False),
            LISTEN: Method(ListenParams, _listen, in_handshake=False),
        }

    def initialize(self, request: Request) -> tuple[InitializeParams, JsonObject]:
        """Return what a handshake-era caller declared, and the result for it. Raises: ProtocolError."""
        said = _checked(request, InitializeParams)
        known = said.protocol_version in HANDSHAKE_PROTOCOL_VERSIONS
        return said, {
            "protocolVersion": said.protocol_version if known else LATEST_HANDSHAKE_VERSION,
            "capabilities": self.capabilities(),
            "serverInfo": SERVER_INFO,
            "instructions": instructions(self.servers, current_surface()),
        }

    def has(self, name: str, *, is_modern: bool) -> bool:
        method = self.methods.get(name)
        return method is not None and (method.in_modern if is_modern else method.in_handshake)

    async def answer(self, asked: MethodRequest) -> JsonObject:
        """Return the result. Raises: ProtocolError."""
        request = asked.context.request
        if not self.has(request.method, is_modern=asked.is_modern):
            raise ProtocolError(METHOD_NOT_FOUND, "Method not found", request.method)
        method = self.methods[request.method]
        params = _checked(request, method.params, has_envelope=asked.is_modern)
        result = await method.answer(asked, params)
        return {**method.marks, **result} if asked.is_modern and method.marks else result

    async def _discover(self, asked: MethodRequest, params: RequestParams) -> JsonObject:
        return {
            "supportedVersions": list(MODERN_PROTOCOL_VERSIONS),
            "capabilities": self.capabilities(),
            "instructions": instructions(self.servers, current_surface()),
        }

    def capabilities(self) -> JsonObject:
        return {"resources": {"subscribe": True, "listChanged": False}, "tools": {"listChanged": False}}

    async def _list_tools(self, asked: MethodRequest, params: PageParams) -> JsonObject:
        return self._listed(current_surface(), with_session=asked.is_modern and self._takes_handles)

    def _list_result(self, surface: Surface, *, with_session: bool) -> JsonObject:
        names = order_of_listing(surface, self._tools)
        return {"tools": [_listed(self._tools[name], surface, with_session) for name in names]}


def _checked(request: Request, shape: type[P], *, has_envelope: bool = False) -> P:
    try:
        if has_envelope:
            check_envelope(request.params)
        return read(shape, request.params)
    except ValidationError as error:
        raise ProtocolError(INVALID_PARAMS, f"Invalid request parameters: {error}") from None


def _listed(tool: Tool, surface: Surface, with_session: bool) -> JsonObject:
    description, schema = tool.listing(surface)
    with_session = with_session and surface is Surface.FULL  # a short list does not offer open_session
    listed: JsonObject = {
        "name": tool.name,
        "title": tool.title,
        "description": description,
        "inputSchema": _schema_with_session(tool, schema) if with_session else schema,
        "annotations": tool.effect.annotations(),
    }
    return listed | ({"_meta": meta} if (meta := tool.load.meta()) else {})


def _schema_with_session(tool: Tool, schema: JsonObject) -> JsonObject:
    """Add the argument for 2026-07-28 callers over HTTP: their protocol has no session, so they can name one."""
    properties = schema.get("properties", {})
    if SESSION_ARGUMENT in properties or not tool.needs_session:
        return schema
    session = _SESSION if tool.load.always else _SESSION_AGAIN
    return schema | {"properties": properties | {SESSION_ARGUMENT: session}}


async def _ping(asked: MethodRequest, params: RequestParams) -> JsonObject:
    return {}


async def _list_resources(asked: MethodRequest, params: PageParams) -> JsonObject:
    return {"resources": LISTED}


async def _list_templates(asked: MethodRequest, params: PageParams) -> JsonObject:
    return {"resourceTemplates": []}


async def _read_resource(asked: MethodRequest, params: ResourceParams) -> JsonObject:
    try:
        return read_own_resource(params.uri, asked.feed.session)
    except EmceepeeError as error:
        raise ProtocolError(INVALID_PARAMS, str(error), {"uri": params.uri}) from None


async def _subscribe(asked: MethodRequest, params: ResourceParams) -> JsonObject:
    if params.uri != EVENTS_URI:
        raise ProtocolError(
            INVALID_PARAMS,
            f"only {EVENTS_URI} can be subscribed to; servers' resources: {call_to('subscribe_resource')}",
        )
    asked.feed.follow(True)
    return {}


async def _unsubscribe(asked: MethodRequest, params: ResourceParams) -> JsonObject:
    if params.uri == EVENTS_URI:
        asked.feed.follow(False)
    return {}


async def _listen(asked: MethodRequest, params: ListenParams) -> JsonObject:
    if asked.feed.session is None:
        error = EmceepeeError(
            "This request names no session, so there are no events for it. Pin a name in the client's configuration "
            "with the header Emceepee-Session or ?session= in the URL.",
            code=ErrorCode.SESSION_NOT_FOUND,
        )
        raise ProtocolError(INVALID_PARAMS, str(error), error.reply_body())
    return await listen(asked.feed, params.notifications, asked.context)
