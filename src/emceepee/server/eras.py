"""What a caller is to us in each protocol era. The first request of a conversation decides, once, which it is."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import anyio
from mcp.server.connection import Connection
from mcp.server.lowlevel import Server
from mcp.server.runner import ServerRunner, serve_one
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import MCPError, NoBackChannelError
from mcp.shared.inbound import InboundLadderRejection, classify_inbound_request
from mcp.shared.jsonrpc_dispatcher import handler_exception_to_error_data
from mcp.shared.transport_context import TransportContext
from mcp_types import PROTOCOL_VERSION_META_KEY, SERVER_INFO_META_KEY, UNSUPPORTED_PROTOCOL_VERSION
from mcp_types.version import LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS

from emceepee.json_rpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Notification,
    Request,
    RequestId,
    error_message,
    progress_token,
)
from emceepee.json_types import JsonObject
from emceepee.server.dispatch import BadCall
from emceepee.server.sdk_server import CallerState
from emceepee.telemetry.logs import EventLog

log = EventLog("server")
Send = Callable[[JsonObject], None]
BATCH_VERSION = "2025-03-26"  # the only one that had batches


class Channel:
    """One way to speak to the caller during a request, in the kernel's words (its DispatchContext)."""

    transport = TransportContext(kind="stdio", can_send_request=False)
    can_send_request = False
    message_metadata = None

    def __init__(self, send: Send, request: Request | None = None) -> None:
        self._send = send
        self._token = progress_token(request.params) if request else None
        self.request_id: RequestId | None = request.request_id if request else None

    @property
    def cancel_requested(self) -> anyio.Event:
        return anyio.Event()  # never set: cancelling is done to the task that serves the request

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": dict(params or {})})

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        told = {"progress": progress, "total": total, "message": message}
        if self._token is not None:
            params = {key: value for key, value in told.items() if value is not None}
            await self.notify("notifications/progress", params | {"progressToken": self._token})

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> JsonObject:
        raise NoBackChannelError(method)


class Era(Protocol):
    """A caller whose era is known."""

    def refusal(self, request: Request) -> JsonObject | None:
        """The error for a request that this era does not allow now."""
        ...

    async def serve(self, request: Request, send: Send) -> JsonObject:
        """The result of anything but `tools/call`; `send` speaks to the caller meanwhile. Raises as the kernel does."""
        ...

    async def hear(self, notice: Notification) -> None: ...

    def finished(self, result: JsonObject) -> JsonObject:
        """A tool's result with what the era adds to every result."""
        ...

    @property
    def has_batches(self) -> bool: ...


def era_for(opening: Request, sdk_server: Server[CallerState], state: CallerState) -> Era:
    """The era that a conversation's first request opens."""
    if opening.method != "initialize" and _has_envelope(opening):
        return ModernEra(sdk_server, state)
    return HandshakeEra(sdk_server, state)


class HandshakeEra:
    """A caller up to 2025-11-25: it initializes, and what it told then holds for the whole conversation."""

    def __init__(self, sdk_server: Server[CallerState], state: CallerState) -> None:
        self._sdk_server, self._state, self._send = sdk_server, state, state.send
        self._connection = Connection.for_loop(Channel(state.send))

    @property
    def is_open(self) -> bool:
        return self._connection.initialize_accepted

    @property
    def version(self) -> str:
        return self._connection.protocol_version

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

    async def serve(self, request: Request, send: Send) -> JsonObject:
        return await serve_one(
            self._sdk_server,
            Channel(send, request),
            request.method,
            request.params,
            connection=self._connection,
            lifespan_state=self._state,
        )

    async def hear(self, notice: Notification) -> None:
        await ServerRunner(self._sdk_server, self._connection, self._state).on_notify(
            Channel(self._send), notice.method, notice.params
        )

    def finished(self, result: JsonObject) -> JsonObject:
        return result


async def reject_handshake(request: Request, sdk_server: Server[CallerState]) -> JsonObject | None:
    """The error that this `initialize` would be answered with, if any: it is tried out, and nothing is kept of it."""
    era = HandshakeEra(sdk_server, CallerState(None, _unheard))
    try:
        await era.serve(request, _unheard)
    except Exception as error:
        return error_for(request, error)
    return None


def _unheard(message: JsonObject) -> None: ...


class ModernEra:
    """A caller of 2026-07-28: every request says anew who asks and what it can do."""

    has_batches = False

    def __init__(self, sdk_server: Server[CallerState], state: CallerState) -> None:
        self._sdk_server, self._state, self._send = sdk_server, state, state.send
        self._stamp = sdk_server.server_info_stamp

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

    async def serve(self, request: Request, send: Send) -> JsonObject:
        route = classify_inbound_request({"method": request.method, "params": request.params})
        if isinstance(route, InboundLadderRejection):
            raise MCPError(route.code, route.message, route.data)
        connection = Connection.from_envelope(route.protocol_version, route.client_info, route.client_capabilities)
        return await serve_one(
            self._sdk_server,
            Channel(send, request),
            request.method,
            request.params,
            connection=connection,
            lifespan_state=self._state,
        )

    async def hear(self, notice: Notification) -> None:
        connection = Connection.from_envelope(LATEST_MODERN_VERSION, None, None)
        await ServerRunner(self._sdk_server, connection, self._state).on_notify(
            Channel(self._send), notice.method, notice.params
        )

    def finished(self, result: JsonObject) -> JsonObject:
        return complete(result, self._stamp)


def complete(result: JsonObject, stamp: JsonObject) -> JsonObject:
    """A tool's result as the 2026-07-28 era wants it; `stamp` is who we are."""
    meta = result.get("_meta")
    if meta is None:
        meta = {SERVER_INFO_META_KEY: stamp}
    return {"resultType": "complete", **result, "_meta": meta}


def error_for(request: Request, error: Exception) -> JsonObject:
    """The one place where a failure becomes a wire error; no text of ours that was not meant for callers leaks."""
    if isinstance(error, BadCall):
        return error_message(request.request_id, error.code, str(error))
    known = handler_exception_to_error_data(error)
    if known is not None:
        return error_message(request.request_id, known.code, known.message, known.data)
    log.error("request_failed", method=request.method, error=f"{type(error).__name__}: {error}")
    return error_message(request.request_id, INTERNAL_ERROR, "Internal error")


def _has_envelope(request: Request) -> bool:
    meta = (request.params or {}).get("_meta")
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
