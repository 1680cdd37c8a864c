"""The client side of JSON-RPC, common to all links: building requests and reading responses."""

import re
from collections.abc import Callable
from typing import Any

from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.wire.codec import Unreadable
from emceepee.wire.json_rpc import notification_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.line_splitter import ANSWERED, TooLongLine

NOT_JSON = Unreadable("not JSON")
SEARCHED_BYTES = 64 << 10  # searched for ids at each end of an undecodable message
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,18})\b')
# These requests open a link and are never cancelled with a notification. The link itself is closed instead, and the
# handshake era forbids the notification.
NEVER_CANCELLED = frozenset({"initialize", "server/discover"})


class NumberedParams(dict[str, Any]):
    """Params with a callback for the number of their request."""

    __slots__ = ("on_number",)

    def __init__(self, params: JsonObject, on_number: Callable[[int], None]) -> None:
        super().__init__(params)
        self.on_number = on_number


def request_message(
    number: int, method: str, params: JsonObject | None, *, meta: JsonObject | None, wants_progress: bool
) -> JsonObject:
    """Return a request of ours.

    `meta` is the era's content for `_meta`. The request's number is also its progress token.
    """
    message: JsonObject = {"jsonrpc": "2.0", "id": number, "method": method}
    if type(params) is NumberedParams:
        params.on_number(number)
    stamped = _stamp(params, meta, number if wants_progress else None)
    if stamped is not None:
        message["params"] = stamped
    return message


def cancel_message(number: int) -> JsonObject:
    """Return the notification that cancels request `number` at the backend."""
    return notification_message("notifications/cancelled", {"requestId": number, "reason": "cancelled by the caller"})


def _stamp(params: JsonObject | None, meta: JsonObject | None, progress_token: int | None) -> JsonObject | None:
    if meta is None and progress_token is None:
        return params
    params = params or {}
    own = params.get("_meta")
    stamped = {**own, **(meta or {})} if isinstance(own, dict) else dict(meta or {})
    if progress_token is not None:
        stamped.setdefault("progressToken", progress_token)  # a task has its own token, which outlives the request
    return {**params, "_meta": stamped}


def outcome(message: Any) -> JsonObject:
    """Return the result in a response.

    Raises:
        RpcError: the response is an error.
        LinkError: it is not a response.
    """
    if isinstance(message, dict):
        if isinstance(result := message.get("result"), dict):
            return result
        if isinstance(result, Unreadable):
            raise LinkError(LinkFailure.PROTOCOL, f"the answer is {result}")
        if isinstance(error := message.get("error"), dict):
            raise RpcError(error)
    raise LinkError(LinkFailure.PROTOCOL, f"the answer has neither a result object nor an error: {str(message)[:200]}")


def unreadable(data: bytes, error: ValueError) -> JsonObject | None:
    """Return a substitute for a message that cannot be decoded, or None if its id is not found.

    A substitute with a `result` fails the request that it answers. A substitute with a `method` causes a refusal of the
    backend's request.
    """
    why, ends = error if isinstance(error, Unreadable) else NOT_JSON, TooLongLine.of(data)
    key = ends.message_id
    if key is not None and ends.is_a_request:
        return {"jsonrpc": "2.0", "id": key, "method": why}
    if ends.is_an_answer:
        return {"jsonrpc": "2.0", "id": key, "result": why}
    return None


def ids_near_ends(data: bytes) -> list[int]:
    """Return the ids in an undecodable answer, including nested and batched ids, or [] if it is not an answer."""
    near = _near_ends(data)
    is_batch = near.lstrip().startswith(b"[")
    may_answer = ANSWERED.search(near) and (is_batch or TooLongLine.of(data).may_be_an_answer)
    return [int(number) for number in _ID.findall(near)] if may_answer else []


def _near_ends(data: bytes) -> bytes:
    return data if len(data) <= 2 * SEARCHED_BYTES else data[:SEARCHED_BYTES] + b"\n" + data[-SEARCHED_BYTES:]


def number_of(key: Any) -> int:
    """Return the number of our request that an id names. Return 0, which no request has, for a foreign id."""
    if isinstance(key, str) and key.isdecimal() and len(key) < 20:
        return int(key)  # some backends convert the id to text
    return int(key) if type(key) in (int, float) and key == key // 1 else 0


def names_request(key: Any, number: int) -> bool:
    """Return whether an answer's id names our request. Some backends convert the id to text or to a float."""
    return bool(key == number) or str(key) == str(number)


def names_none(key: Any) -> bool:
    """Return whether an error's id names no request: null, missing, or a placeholder such as the Python SDK's."""
    return key is None or (isinstance(key, str) and not key.isdecimal())
