"""JSON-RPC messages: classification of a caller's message without side effects, and construction of replies."""

from dataclasses import dataclass
from typing import Any

from emceepee.wire.json_types import JsonObject, JsonValue
from emceepee.wire.protocol import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    INVALID_REQUEST,
    JSONRPC_VERSION,
    PROTOCOL_VERSION_META_KEY,
    REQUEST_TIMEOUT,
)

SERVER_ERROR = -32000  # the first code of the range that implementations define
REQUEST_CANCELLED = -32800  # from the Language Server Protocol; MCP defines no such code
LONGEST_LABEL = 100
TRACE_KEYS = ("traceparent", "tracestate", "baggage")
LONGEST_TRACE_CONTEXT = 8192  # characters of each field, the W3C limit for the longest one
SHUTTING_DOWN = "The server is shutting down."  # for requests that arrive during the shutdown

RequestId = int | str
_TIMEOUT_WORDS = (str(REQUEST_TIMEOUT), "timed out", "timed-out", "time out", "time-out", "timeout", "deadline")


class ProtocolError(Exception):
    """The request is answered with a JSON-RPC error with this code and message."""

    def __init__(self, code: int, message: str, data: JsonValue = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


@dataclass(frozen=True, slots=True)
class Request:
    """A message that requires an answer."""

    request_id: RequestId
    method: str
    params: JsonObject | None


@dataclass(frozen=True, slots=True)
class Notification:
    """A message that requires no answer."""

    method: str
    params: JsonObject | None


@dataclass(frozen=True, slots=True)
class Response:
    """The caller's answer to a request of emceepee. A malformed id becomes None and matches no request."""

    request_id: RequestId | None
    message: JsonObject


@dataclass(frozen=True, slots=True)
class InvalidMessage:
    """A message that is not JSON-RPC; `reply` is the error to send."""

    reply: JsonObject


def classify(value: Any) -> Request | Notification | Response | InvalidMessage:
    """Classify one message. A batch is invalid."""
    if not isinstance(value, dict):
        return InvalidMessage(error_message(None, INVALID_REQUEST, "Invalid request: a message is a JSON object"))
    key = value.get("id")
    known_key = key if isinstance(key, int | str) and not isinstance(key, bool) else None
    if value.get("jsonrpc") != JSONRPC_VERSION:
        return InvalidMessage(error_message(known_key, INVALID_REQUEST, 'Invalid request: jsonrpc must be "2.0"'))
    method, params = value.get("method"), value.get("params")
    if method is None and ("result" in value or "error" in value):
        return Response(known_key, value)  # never answered: errors about errors would never end
    if not isinstance(method, str):
        return InvalidMessage(error_message(known_key, INVALID_REQUEST, "Invalid request: method must be a string"))
    if params is not None and not isinstance(params, dict):
        return InvalidMessage(error_message(known_key, INVALID_REQUEST, "Invalid request: params must be an object"))
    if "id" not in value:
        return Notification(method, params)
    if known_key is None:
        return InvalidMessage(
            error_message(None, INVALID_REQUEST, "Invalid request: id must be a string or an integer")
        )
    return Request(known_key, method, params)


def result_message(request_id: RequestId, result: JsonObject) -> JsonObject:
    return {"jsonrpc": JSONRPC_VERSION, "id": request_id, "result": result}


def error_message(request_id: RequestId | None, code: int, message: str, data: Any = None) -> JsonObject:
    error: JsonObject = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": JSONRPC_VERSION, "id": request_id, "error": error}


def notification_message(method: str, params: JsonObject | None = None) -> JsonObject:
    message: JsonObject = {"jsonrpc": JSONRPC_VERSION, "method": method}
    if params is not None:
        message["params"] = params
    return message


def request_message(request_id: RequestId, method: str, params: JsonObject) -> JsonObject:
    return {"jsonrpc": JSONRPC_VERSION, "id": request_id, "method": method, "params": params}


def cancelled_id(notice: Notification) -> RequestId | None:
    """Return the id of the request that a `notifications/cancelled` names."""
    key = (notice.params or {}).get("requestId")
    return key if isinstance(key, int | str) and not isinstance(key, bool) else None


def is_client_timeout(notice: Notification) -> bool:
    """Return whether a `notifications/cancelled` reports a timeout: the client only stopped waiting for the work."""
    reason = cancellation_reason(notice)
    return reason is not None and any(word in reason.lower() for word in _TIMEOUT_WORDS)


def cancellation_reason(notice: Notification) -> str | None:
    reason = (notice.params or {}).get("reason")
    return reason if isinstance(reason, str) else None


def progress_token(params: JsonObject | None) -> RequestId | None:
    """Return the token with which the caller requested progress notifications."""
    meta = params.get("_meta") if params else None
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None


def trace_context(params: JsonObject | None) -> JsonObject | None:
    """Return the trace context in a request; None if it has none."""
    meta = params.get("_meta") if params else None
    if not isinstance(meta, dict) or "traceparent" not in meta:
        return None
    said = {key: meta.get(key) for key in TRACE_KEYS}
    return {key: text for key, text in said.items() if isinstance(text, str) and len(text) <= LONGEST_TRACE_CONTEXT}


def client_info(params: object) -> JsonObject:
    """Return the client info in the params of `initialize` or of any 2026-07-28 request; {} if missing."""
    if not isinstance(params, dict):
        return {}
    meta = params.get("_meta")
    info = params.get("clientInfo") or (meta.get(CLIENT_INFO_META_KEY) if isinstance(meta, dict) else None)
    return info if isinstance(info, dict) else {}


def modern_capabilities(params: JsonObject | None) -> JsonObject | None:
    """Return the client capabilities in a 2026-07-28 request; None if the request is not of that era."""
    meta = params.get("_meta") if params else None
    if not isinstance(meta, dict) or PROTOCOL_VERSION_META_KEY not in meta:
        return None
    declared = meta.get(CLIENT_CAPABILITIES_META_KEY)
    return declared if isinstance(declared, dict) else {}


def said_version(params: JsonObject | None) -> str | None:
    """Return the protocol version that a 2026-07-28 request declares."""
    meta = params.get("_meta") if params else None
    version = meta.get(PROTOCOL_VERSION_META_KEY) if isinstance(meta, dict) else None
    return version if isinstance(version, str) else None


def client_label(params: object) -> str | None:
    """Return the client's name and version."""
    info = client_info(params)
    said = [word for word in (info.get("name"), info.get("version")) if isinstance(word, str)]
    printable = "".join(letter for letter in " ".join(said)[:LONGEST_LABEL] if letter.isprintable())
    return printable.strip() or None
