"""The protocol's two eras: what each allows and adds, and the way to the SDK's server for all but tool calls."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Protocol

import anyio
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.transport_context import TransportContext
from mcp_types import (
    INVALID_REQUEST,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    InitializeRequestParams,
)
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from emceepee.json_rpc import (
    Notification,
    Request,
    RequestId,
    error_message,
    notification_message,
    progress_token,
)
from emceepee.json_types import JsonObject
from emceepee.server.events_feed import EventsFeed
from emceepee.tools.native_questions import FORM, declared_modes
from emceepee.tools.request_context import NO_CHANNEL, RequestContext

BATCH_VERSION = "2025-03-26"  # the only one that had batches
FORMS_SINCE, MODES_SINCE = "2025-06-18", "2025-11-25"  # in between there was one kind of question, which had no mode


class SdkChannel:
    """A channel as the SDK's server wants it (its DispatchContext)."""

    transport = TransportContext(kind="stdio", can_send_request=False)
    can_send_request = False
    message_metadata = None

    def __init__(self, send: Callable[[JsonObject], None], request: Request | None = None) -> None:
        self._send = send
        self._token = progress_token(request.params) if request else None
        self.request_id: RequestId | None = request.request_id if request else None

    @property
    def cancel_requested(self) -> anyio.Event:
        return anyio.Event()  # never set: cancelling is done to the task that serves the request

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        self._send(notification_message(method, dict(params or {})))

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        known = {"progress": progress, "total": total, "message": message}
        if self._token is not None:
            params = {key: value for key, value in known.items() if value is not None}
            await self.notify("notifications/progress", params | {"progressToken": self._token})

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        raise NoBackChannelError(method)


class Era(Protocol):
    """The era of one connection, decided once by its first request."""

    def refusal(self, request: Request) -> JsonObject | None:
        """The error for a request that this era does not allow now."""
        ...

    async def serve(self, context: RequestContext) -> JsonObject:
        """The result of anything but `tools/call`. Raises as the SDK's server does."""
        ...

    async def handle_notification(self, notification: Notification) -> None: ...

    def complete(self, result: JsonObject) -> JsonObject:
        """A tool's result with what the era adds to every result."""
        ...

    @property
    def has_batches(self) -> bool: ...


def era_for(opening: Request, sdk_server: Server[EventsFeed], feed: EventsFeed) -> Era:
    """The era that a connection's first request opens."""
    if opening.method != "initialize" and _has_envelope(opening):
        return ModernEra(sdk_server)
    return HandshakeEra(sdk_server, feed)


_NOTHING_TO_CLOSE = AsyncExitStack()
_MOST_PARAMS = 64  # kinds of clients that are known at a time
_LONGEST_PARAMS = 2000  # characters; nobody keeps much for a caller that has left
_params: dict[str, InitializeRequestParams] = {}


def _share_parts(connection: Connection) -> None:
    """Idle connections are many, and a fourth of what each takes is the same in all: what clients of one kind say of
    themselves, and a place for resources that nothing here uses."""
    connection.exit_stack = _NOTHING_TO_CLOSE
    if (params := connection.client_params) is not None:
        if len(_params) >= _MOST_PARAMS:
            _params.clear()
        if len(said := params.model_dump_json()) <= _LONGEST_PARAMS:
            connection.client_params = _params.setdefault(said, params)


class HandshakeEra:
    """A caller up to 2025-11-25: it initializes, and what it declared then holds for the whole connection."""

    def __init__(self, sdk_server: Server[EventsFeed], feed: EventsFeed) -> None:
        self._sdk_server, self._feed = sdk_server, feed
        self._connection = Connection.for_loop(SdkChannel(feed.send))

    @property
    def is_open(self) -> bool:
        return self._connection.initialize_accepted

    @property
    def version(self) -> str:
        return self._connection.protocol_version

    @property
    def is_initialized(self) -> bool:
        """Whether the caller said that it is ready."""
        return self._connection.initialized.is_set()

    @property
    def elicitation_modes(self) -> frozenset[str]:
        """The kinds of questions that the caller said it takes."""
        params = self._connection.client_params
        declared = params.capabilities.elicitation if params is not None and self.version >= FORMS_SINCE else None
        modes = declared_modes(None if declared is None else declared.model_dump(exclude_none=True))
        return modes if self.version >= MODES_SINCE else modes and frozenset({FORM})

    async def resume(self, handshake: JsonObject, *, is_initialized: bool) -> None:
        """Take up a connection of a process that has ended, as if its caller had just said this again."""
        await self.serve(RequestContext(Request(0, "initialize", handshake)))
        if is_initialized:
            await self.handle_notification(Notification("notifications/initialized", None))

    @property
    def has_batches(self) -> bool:
        return self._connection.initialize_accepted and self._connection.protocol_version == BATCH_VERSION

    def refusal(self, request: Request) -> JsonObject | None:
        if request.method != "initialize" and _has_envelope(request):
            words = "this conversation began with initialize; requests of the 2026-07-28 era are not accepted in it"
            return error_message(request.request_id, INVALID_REQUEST, words)
        if request.method == "tools/call" and not self._connection.initialize_accepted:
            return error_message(request.request_id, INVALID_REQUEST, "send initialize before tools/call")
        return None

    async def serve(self, context: RequestContext) -> JsonObject:
        request = context.request
        return await serve_one(
            self._sdk_server,
            SdkChannel(context.channel.send, request),
            request.method,
            request.params,
            connection=self._connection,
            lifespan_state=self._feed,
        )

    async def handle_notification(self, notification: Notification) -> None:
        await ServerRunner(self._sdk_server, self._connection, self._feed).on_notify(
            SdkChannel(self._feed.send), notification.method, notification.params
        )
        if self.is_initialized and self._connection.exit_stack is not _NOTHING_TO_CLOSE:
            _share_parts(self._connection)

    def complete(self, result: JsonObject) -> JsonObject:
        return result


class ModernEra:
    """A caller of 2026-07-28: every request declares anew who sends it and what it can do."""

    has_batches = False

    def __init__(self, sdk_server: Server[EventsFeed]) -> None:
        self._sdk_server = sdk_server
        self._server_info = sdk_server.server_info_stamp  # once: the property makes a copy each time

    def refusal(self, request: Request) -> JsonObject | None:
        if request.method == "initialize":
            asked = (request.params or {}).get("protocolVersion")
            data = {"supported": list(MODERN_PROTOCOL_VERSIONS)} | (
                {"requested": asked} if isinstance(asked, str) else {}
            )
            words = "this conversation is of the 2026-07-28 era; initialize is not accepted in it"
            return error_message(request.request_id, UNSUPPORTED_PROTOCOL_VERSION, words, data)
        verdict = classify_inbound_request({"method": request.method, "params": request.params})
        if isinstance(verdict, InboundLadderRejection):
            return error_message(request.request_id, verdict.code, verdict.message, verdict.data)
        return None

    async def serve(self, context: RequestContext) -> JsonObject:
        request, session, send = context.request, context.session, context.channel.send
        route = classify_inbound_request({"method": request.method, "params": request.params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
        return await serve_one(
            self._sdk_server,
            SdkChannel(send, request),
            request.method,
            request.params,
            connection=connection,
            lifespan_state=EventsFeed(session, send),
        )

    async def handle_notification(self, notification: Notification) -> None:
        connection = Connection.from_envelope(LATEST_MODERN_VERSION, None, None)
        send = NO_CHANNEL.send
        await ServerRunner(self._sdk_server, connection, EventsFeed(None, send)).on_notify(
            SdkChannel(send), notification.method, notification.params
        )

    def complete(self, result: JsonObject) -> JsonObject:
        meta = result.get("_meta")
        if meta is None:
            meta = {SERVER_INFO_META_KEY: self._server_info}
        return {"resultType": "complete", **result, "_meta": meta}


def _has_envelope(request: Request) -> bool:
    meta = (request.params or {}).get("_meta")
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
