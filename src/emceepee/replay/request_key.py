"""Defines equal requests: the same method and arguments, regardless of ids, `_meta`, and answers to questions."""

import json
from typing import Any

from emceepee.wire.json_types import JsonObject

_OF_ONE_TIME = frozenset({"_meta", "inputResponses", "requestState"})
RoundKey = str


def request_key(method: str, params: JsonObject) -> str:
    """Return a key that is equal for equivalent requests; `params` are already masked."""
    kept = {key: value for key, value in params.items() if key not in _OF_ONE_TIME and value not in (None, {})}
    if params.get("task") is not None:
        kept["task"] = True  # its TTL is the client's choice and does not matter
    return f"{method} {canonical(kept)}"


def canonical(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def round_key(params: JsonObject) -> RoundKey | None:
    """Return a key for the question that a repeated request answers; None if it answers none."""
    if "inputResponses" not in params and "requestState" not in params:
        return None
    return canonical(params.get("requestState"))


def _plain(value: Any) -> Any:
    """Normalize numbers: clients may write 2 or 2.0 for the same value."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value
