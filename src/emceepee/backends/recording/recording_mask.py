"""Masks secrets in recordings, by the rules for logs and the console, and answers to forms.

A server's state that its client must return may contain such answers, so only a digest of it is stored.

A masked value keeps its type, so that replayed messages still match the schemas of their server. A replay masks
requests the same way before it compares them with recorded ones.
"""

from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from emceepee.telemetry.redaction import MASK, redacted
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

# Property names in a schema are not values: `{"properties": {"token": …}}` reveals nothing.
SCHEMA_KEYS = frozenset({"inputSchema", "outputSchema", "requestedSchema"})
NEVER_KEPT = frozenset({"_meta", "progressToken"})  # valid in one conversation only
STATE_KEY = "requestState"
DIGEST_BYTES = 16
# Without a key, a reader of the file could guess the state from its digest: some states are only a few words.
_DIGEST_KEY = token_bytes(DIGEST_BYTES)


def masked(value: Any) -> Any:
    """Return the value without secrets."""
    if isinstance(value, dict):
        return {key: item if key in SCHEMA_KEYS else _masked_item(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return redacted(value) if isinstance(value, str) else value


def _masked_item(key: str, item: Any) -> Any:
    if isinstance(item, bool) or item is None or redacted("", name=key) != MASK:
        return masked(item)
    if isinstance(item, str):
        return MASK
    return 0 if isinstance(item, int | float) else type(item)()


def masked_params(params: JsonObject | None) -> JsonObject:
    """Mask the params of a request or a notification, and drop data that is valid in one conversation only."""
    kept = {key: item for key, item in (params or {}).items() if key not in NEVER_KEPT}
    responses = kept.pop("inputResponses", None)
    safe: JsonObject = masked(kept)
    if isinstance(responses, dict):
        safe["inputResponses"] = {key: masked_answer(answer) for key, answer in responses.items()}
    return _with_digest(safe, kept)


def masked_result(result: JsonObject) -> JsonObject:
    """Mask the result of a request."""
    safe: JsonObject = masked(result)
    return _with_digest(safe, result)


def _with_digest(safe: JsonObject, whole: JsonObject) -> JsonObject:
    """Replace the state between two rounds with a digest, which only distinguishes it from other states."""
    if (state := whole.get(STATE_KEY)) is not None:
        safe[STATE_KEY] = blake2b(encode(state), key=_DIGEST_KEY, digest_size=DIGEST_BYTES).hexdigest()
    return safe


def masked_answer(answer: Any) -> Any:
    """Mask an answer. A person's form entries are never stored: only the names of the fields remain."""
    if isinstance(answer, dict) and isinstance(content := answer.get("content"), dict) and "action" in answer:
        return masked(answer) | {"content": dict.fromkeys(content, MASK)}
    return masked(answer)
