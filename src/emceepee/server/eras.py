"""The protocol's two eras: what each accepts and adds, and the path to the kernel for all but tool calls."""

from typing import Protocol

from emceepee.server import envelope
from emceepee.server.events_feed import EventsFeed
from emceepee.server.params import Elicitation
from emceepee.server.protocol_methods import SERVER_INFO, MethodRequest, ProtocolMethods
from emceepee.tools.replies.native_questions import FORM, URL, declared_modes
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import Notification, ProtocolError, Request, error_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import (
    INVALID_REQUEST,
    LATEST_HANDSHAKE_VERSION,
    LATEST_MODERN_VERSION,
    MODERN_PROTOCOL_VERSIONS,
    PROTOCOL_VERSION_META_KEY,
    SERVER_INFO_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
)

BATCH_VERSION = "2025-03-26"  # the only version with batches
FORMS_SINCE, MODES_SINCE = "2025-06-18", "2025-11-25"  # in between: one kind of question, without a mode


class Era(Protocol):
    """The era of one connection. The connection's first request decides it."""

    def refusal(self, request: Request) -> JsonObject | None:
        """Return the error for a request that this era does not allow in its current state."""
        ...

    async def serve(self, context: RequestContext) -> JsonObject:
        """Return the result of any request except `tools/call`. Raises: ProtocolError."""
        ...

    async def handle_notification(self, notification: Notification) -> None: ...

    def complete(self, result: JsonObject) -> JsonObject:
        """Return a tool's result with the fields that the era adds to every result."""
        ...

    @property
    def has_batches(self) -> bool: ...

    @property
    def version(self) -> str:
        """The protocol version of requests that name none."""
        ...

    @property
    def client_name(self) -> str | None:
        """The client's name, for requests that do not carry it."""
        ...


def era_for(opening: Request, methods: ProtocolMethods, feed: EventsFeed) -> Era:
    """Return the era that a connection's first request selects."""
    if opening.method != "initialize" and _has_envelope(opening):
        return ModernEra(methods)
    return HandshakeEra(methods, feed)


class HandshakeEra:
    """A caller up to 2025-11-25: it initializes once, and its declarations hold for the whole connection."""

    __slots__ = ("_feed", "_methods", "client_name", "elicitation_modes", "is_initialized", "is_open", "version")

    def __init__(self, methods: ProtocolMethods, feed: EventsFeed) -> None:
        self._methods, self._feed = methods, feed
        self.version = LATEST_HANDSHAKE_VERSION
        self.client_name: str | None = None
        self.is_open = False
        self.is_initialized = False  # whether the caller sent notifications/initialized
        self.elicitation_modes: frozenset[str] = frozenset()  # the kinds of questions that the caller declared

    async def resume(self, handshake: JsonObject, *, is_initialized: bool) -> None:
        """Resume a connection of an ended process, as if its caller had just repeated the handshake.

        Raises:
            ProtocolError: the handshake is invalid. An older version of emceepee may have accepted it.
        """
        self._initialize(Request(0, "initialize", handshake))
        if is_initialized:
            await self.handle_notification(Notification("notifications/initialized", None))

    @property
    def has_batches(self) -> bool:
        return self.is_open and self.version == BATCH_VERSION

    def refusal(self, request: Request) -> JsonObject | None:
        if request.method != "initialize" and _has_envelope(request):
            words = "this conversation began with initialize; requests of the 2026-07-28 era are not accepted in it"
            return error_message(request.request_id, INVALID_REQUEST, words)
        if not self.is_open and self._needs_handshake(request.method):
            return error_message(request.request_id, INVALID_REQUEST, f"send initialize before {request.method}")
        return None

    def _needs_handshake(self, method: str) -> bool:
        """Return whether the method requires a handshake. Unknown methods do not: they fail as unknown methods."""
        return method == "tools/call" or (method != "ping" and self._methods.has(method, is_modern=False))

    async def serve(self, context: RequestContext) -> JsonObject:
        request = context.request
        if request.method == "initialize":
            return self._initialize(request)
        return await self._methods.answer(MethodRequest(context, self._feed, is_modern=False))

    def _initialize(self, request: Request) -> JsonObject:
        said, result = self._methods.initialize(request)
        self.version, self.is_open = result["protocolVersion"], True
        self.client_name = said.client_info.name
        self.elicitation_modes = _modes(self.version, said.capabilities.elicitation)
        return result

    async def handle_notification(self, notification: Notification) -> None:
        meta = (notification.params or {}).get("_meta")
        if notification.method == "notifications/initialized" and (meta is None or isinstance(meta, dict)):
            self.is_open = self.is_initialized = True

    def complete(self, result: JsonObject) -> JsonObject:
        return result


class ModernEra:
    """A caller of 2026-07-28: every request declares its sender and capabilities."""

    has_batches = False
    version = LATEST_MODERN_VERSION
    client_name = None

    def __init__(self, methods: ProtocolMethods) -> None:
        self._methods = methods

    def refusal(self, request: Request) -> JsonObject | None:
        if request.method == "initialize":
            asked = (request.params or {}).get("protocolVersion")
            data = {"supported": list(MODERN_PROTOCOL_VERSIONS)} | (
                {"requested": asked} if isinstance(asked, str) else {}
            )
            words = "this conversation is of the 2026-07-28 era; initialize is not accepted in it"
            return error_message(request.request_id, UNSUPPORTED_PROTOCOL_VERSION, words, data)
        if (why := envelope.refusal(request)) is not None:
            return error_message(request.request_id, why.code, why.message, why.data)
        return None

    async def serve(self, context: RequestContext) -> JsonObject:
        if (why := envelope.refusal(context.request)) is not None:
            raise ProtocolError(why.code, why.message, why.data)
        feed = EventsFeed(context.session, context.channel.send)
        return self.complete(await self._methods.answer(MethodRequest(context, feed, is_modern=True)))

    async def handle_notification(self, notification: Notification) -> None:
        """Ignore the notification: none has a meaning here. Cancellation is handled before this."""

    def complete(self, result: JsonObject) -> JsonObject:
        return modern_result(result)


def modern_result(result: JsonObject) -> JsonObject:
    """Return the result with the fields that every 2026-07-28 result has."""
    meta = result.get("_meta")
    if meta is None:
        meta = {SERVER_INFO_META_KEY: SERVER_INFO}
    return {"resultType": "complete", **result, "_meta": meta}


def _modes(version: str, declared: Elicitation | None) -> frozenset[str]:
    if declared is None or version < FORMS_SINCE:
        return frozenset()
    return declared_modes({FORM: declared.form, URL: declared.url}) if version >= MODES_SINCE else frozenset({FORM})


def _has_envelope(request: Request) -> bool:
    meta = (request.params or {}).get("_meta")
    return isinstance(meta, dict) and PROTOCOL_VERSION_META_KEY in meta
