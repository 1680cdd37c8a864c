"""What every link does of JSON-RPC as a client: the messages it sends, and how it reads what answers them."""

import re
from collections.abc import Callable
from typing import Any

from emceepee.backends.link import Failure, LinkError, RpcError
from emceepee.wire.codec import Unreadable
from emceepee.wire.framing import ANSWERED, TooLongLine
from emceepee.wire.json_rpc import notification_message
from emceepee.wire.json_types import JsonObject

NOT_JSON = Unreadable("not JSON")
SEARCHED_BYTES = 64 << 10  # of each end of an unreadable message, for the ids in it
_ID = re.compile(rb'"id"\s*:\s*"?(\d{1,18})\b')
# What opens a link is not cancelled by a notice: the link itself is given up, and the handshake era forbids it.
NEVER_CANCELLED = frozenset({"initialize", "server/discover"})


class NumberedParams(dict[str, Any]):
    """Params of which someone wants to know the number of the request that they are sent with."""

    __slots__ = ("on_number",)

    def __init__(self, params: JsonObject, on_number: Callable[[int], None]) -> None:
        super().__init__(params)
        self.on_number = on_number


def request_message(
    number: int, method: str, params: JsonObject | None, *, meta: JsonObject | None, wants_progress: bool
) -> JsonObject:
    """A request of ours. `meta` is what its era says in `_meta`; its own number is the token for its progress."""
    message: JsonObject = {"jsonrpc": "2.0", "id": number, "method": method}
    if type(params) is NumberedParams:
        params.on_number(number)
    stamped = _stamp(params, meta, number if wants_progress else None)
    if stamped is not None:
        message["params"] = stamped
    return message


def cancel_message(number: int) -> JsonObject:
    """To the backend that still works on request `number`."""
    return notification_message("notifications/cancelled", {"requestId": number, "reason": "cancelled by the caller"})


def _stamp(params: JsonObject | None, meta: JsonObject | None, progress_token: int | None) -> JsonObject | None:
    if meta is None and progress_token is None:
        return params
    params = params or {}
    own = params.get("_meta")
    stamped = {**own, **(meta or {})} if isinstance(own, dict) else dict(meta or {})
    if progress_token is not None:
        stamped.setdefault("progressToken", progress_token)  # that of a task is its own, and outlives the request
    return {**params, "_meta": stamped}


def outcome(message: Any) -> JsonObject:
    """The result in a response.

    Raises:
        RpcError: the response is an error.
        LinkError: it is no response at all.
    """
    if isinstance(message, dict):
        if isinstance(result := message.get("result"), dict):
            return result
        if isinstance(result, Unreadable):
            raise LinkError(Failure.PROTOCOL, f"the answer is {result}")
        if isinstance(error := message.get("error"), dict):
            raise RpcError(error)
    raise LinkError(Failure.PROTOCOL, f"the answer has neither a result object nor an error: {str(message)[:200]}")


def unreadable(data: bytes, error: ValueError) -> JsonObject | None:
    """Return a message in the place of one that cannot be decoded, or None if its id cannot be found.

    Its `result` fails the request that it answers. Its `method` has the backend's request refused.
    """
    why, ends = error if isinstance(error, Unreadable) else NOT_JSON, TooLongLine.of(data)
    key = ends.message_id
    if key is not None and ends.is_a_request:
        return {"jsonrpc": "2.0", "id": key, "method": why}
    if ends.is_an_answer:
        return {"jsonrpc": "2.0", "id": key, "result": why}
    return None


def ids_near_ends(data: bytes) -> list[int]:
    """Return the ids in an answer that cannot be decoded, also nested ones and those of a batch; [] if it is none."""
    near = _near_ends(data)
    is_batch = near.lstrip().startswith(b"[")
    may_answer = ANSWERED.search(near) and (is_batch or TooLongLine.of(data).may_be_an_answer)
    return [int(number) for number in _ID.findall(near)] if may_answer else []


def _near_ends(data: bytes) -> bytes:
    return data if len(data) <= 2 * SEARCHED_BYTES else data[:SEARCHED_BYTES] + b"\n" + data[-SEARCHED_BYTES:]


def number_of(key: Any) -> int:
    """Which of our requests an id names; 0, which none has, for an id that can be none of ours."""
    if isinstance(key, str) and key.isdecimal() and len(key) < 20:
        return int(key)  # a careless backend made text of it
    return int(key) if type(key) in (int, float) and key == key // 1 else 0


def names_request(key: Any, number: int) -> bool:
    """Whether an answer's id is that of our request; a careless backend makes text of it, or a float."""
    return bool(key == number) or str(key) == str(number)


def names_none(key: Any) -> bool:
    """Whether an error's id names no request at all: null, missing, or a placeholder as the Python SDK's."""
    return key is None or (isinstance(key, str) and not key.isdecimal())
