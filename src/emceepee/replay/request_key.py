"""When two requests are the same: method and arguments are, whatever their ids, `_meta` and answers to questions."""

import json
from typing import Any

from emceepee.wire.json_types import JsonObject

_OF_ONE_TIME = frozenset({"_meta", "inputResponses", "requestState"})
RoundKey = str


def request_key(method: str, params: JsonObject) -> str:
    """Equal for requests that mean the same; `params` are masked already."""
    kept = {key: value for key, value in params.items() if key not in _OF_ONE_TIME and value not in (None, {})}
    if params.get("task") is not None:
        kept["task"] = True  # for how long it may be kept is the client's affair
    return f"{method} {canonical(kept)}"


def canonical(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def round_key(params: JsonObject) -> RoundKey | None:
    """Which question a request comes back from; None if from none."""
    if "inputResponses" not in params and "requestState" not in params:
        return None
    return canonical(params.get("requestState"))


def _plain(value: Any) -> Any:
    """Clients write 2 or 2.0, and mean the same."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
