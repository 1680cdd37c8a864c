"""The SDK's server object, for every method that is not the hot path: handshake, discovery, lists, resources, ping."""

from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from emceepee import __version__
from emceepee.backends.spec import BackendSpec
from emceepee.errors import EmceepeeError
from emceepee.json_types import JsonObject
from emceepee.server.dispatch import SESSION_ARGUMENT
from emceepee.server.events_feed import EventsFeed
from emceepee.server.instructions import instructions
from emceepee.surface import Surface, call_to, current_surface, order_of_listing
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration import Tool
from emceepee.tools.own_resources import EVENTS_URI, LISTED, read_own_resource

Context = ServerRequestContext[EventsFeed, Any]
# Described where a model sees it first: once more in each tool, the words would cost a kilobyte.
_SESSION: JsonObject = {"description": "Handle", "type": "string"}
_SESSION_AGAIN: JsonObject = {"type": "string"}


def build_sdk_server(
    tools: Iterable[Tool] = TOOLS, *, servers: Iterable[BackendSpec] = (), takes_handles: bool = True
) -> Server[EventsFeed]:
    """One for the whole process; it keeps nothing of any caller.

    `servers` are those that the instructions name. `takes_handles`: whether callers of 2026-07-28 can name a session in
    each call; false where the connection itself is the session. What it tells is that of the request's surface.
    """
    by_name = {tool.name: tool for tool in tools}

    @cache
    def listed(surface: Surface, *, with_session: bool) -> types.ListToolsResult:
        names = order_of_listing(surface, by_name)
        return types.ListToolsResult(tools=[_listed(by_name[name], surface, with_session) for name in names])

    resources = types.ListResourcesResult.model_validate({"resources": LISTED})

    async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
        is_modern = ctx.protocol_version in MODERN_PROTOCOL_VERSIONS
        return listed(current_surface(), with_session=is_modern and takes_handles)

    async def list_resources(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListResourcesResult:
        return resources

    async def list_templates(
        ctx: Context, params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        return types.ListResourceTemplatesResult(resource_templates=[])

    sdk_server = _SurfaceServer(
        "emceepee",
        version=__version__,
        title="emceepee",
        instructions=None,  # they are those of each surface
        on_list_tools=list_tools,
        on_list_resources=list_resources,
        on_list_resource_templates=list_templates,
        on_read_resource=_read_resource,
        on_subscribe_resource=_subscribe,
        on_unsubscribe_resource=_unsubscribe,
        on_subscriptions_listen=_listen,
    )
    sdk_server.configured = tuple(servers)
    sdk_server.middleware.clear()  # the SDK's own tracing: emceepee has its spans
    return sdk_server


def name_servers(sdk_server: Server[EventsFeed], servers: Sequence[BackendSpec]) -> None:
    """Those who connect from now on are told of these."""
    assert isinstance(sdk_server, _SurfaceServer)  # made here
    sdk_server.configured = servers


class _SurfaceServer(Server[EventsFeed]):
    """Its instructions are those for the surface of the request that asks for them."""

    configured: Sequence[BackendSpec] = ()

    @property
    def instructions(self) -> str:
        return instructions(self.configured, current_surface())

    @instructions.setter
    def instructions(self, value: str | None) -> None:
        """The SDK sets them once, for everyone."""


def _listed(tool: Tool, surface: Surface, with_session: bool) -> types.Tool:
    description, schema = tool.listing(surface)
    with_session = with_session and surface is Surface.FULL  # who lists few tools is not offered open_session
    return types.Tool(
        name=tool.name,
        title=tool.title,
        description=description,
        input_schema=_schema_with_session(tool, schema) if with_session else schema,
        annotations=types.ToolAnnotations.model_validate(tool.effect.annotations()),
        _meta=tool.load.meta() or None,
    )


def _schema_with_session(tool: Tool, schema: JsonObject) -> JsonObject:
    """For callers of 2026-07-28 over HTTP: their protocol has no session, so they can name one."""
    properties = schema.get("properties", {})
    if SESSION_ARGUMENT in properties or not tool.needs_session:
        return schema
    session = _SESSION if tool.load.always else _SESSION_AGAIN
    return schema | {"properties": properties | {SESSION_ARGUMENT: session}}


async def _read_resource(ctx: Context, params: types.ReadResourceRequestParams) -> types.ReadResourceResult:
    try:
        contents = read_own_resource(str(params.uri), ctx.lifespan_context.session)
        return types.ReadResourceResult.model_validate(contents)
    except EmceepeeError as error:
        raise MCPError(INVALID_PARAMS, str(error), {"uri": str(params.uri)}) from None


async def _subscribe(ctx: Context, params: types.SubscribeRequestParams) -> types.EmptyResult:
    if str(params.uri) != EVENTS_URI:
        raise MCPError(
            INVALID_PARAMS,
            f"only {EVENTS_URI} can be subscribed to; servers' resources: {call_to('subscribe_resource')}",
        )
    ctx.lifespan_context.follow(True)
    return types.EmptyResult()


async def _unsubscribe(ctx: Context, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
    if str(params.uri) == EVENTS_URI:
        ctx.lifespan_context.follow(False)
    return types.EmptyResult()


async def _listen(ctx: Context, params: types.SubscriptionsListenRequestParams) -> types.SubscriptionsListenResult:
    return await ListenHandler(ctx.lifespan_context)(ctx, params)
