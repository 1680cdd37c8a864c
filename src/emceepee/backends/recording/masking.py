"""What a recording does not keep: secrets, by the rules that hold for logs and the console, and answers to forms.

What a server gives to its client to bring back may hold such answers, so that only a digest of it is kept.

A masked value keeps its type, so that what is replayed still fits the schemas of its server. Requests are masked in the
same way before they are compared with recorded ones.
"""

from hashlib import blake2b
from secrets import token_bytes
from typing import Any

from emceepee.telemetry.redaction import MASK, redacted
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

# Names in a schema are names, not values: `{"properties": {"token": …}}` tells nothing.
SCHEMA_KEYS = frozenset({"inputSchema", "outputSchema", "requestedSchema"})
NEVER_KEPT = frozenset({"_meta", "progressToken"})  # of one conversation only, and of no use in another
STATE_KEY = "requestState"
DIGEST_BYTES = 16
# Without it, whoever has the file could try which state gives the digest: some are a few words.
_DIGEST_KEY = token_bytes(DIGEST_BYTES)


def masked(value: Any) -> Any:
    """The same without secrets."""
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
    """Of a request or a notification, without what belongs to one conversation only."""
    kept = {key: item for key, item in (params or {}).items() if key not in NEVER_KEPT}
    responses = kept.pop("inputResponses", None)
    safe: JsonObject = masked(kept)
    if isinstance(responses, dict):
        safe["inputResponses"] = {key: masked_answer(answer) for key, answer in responses.items()}
    return _with_digest(safe, kept)


def masked_result(result: JsonObject) -> JsonObject:
    """Of a request."""
    safe: JsonObject = masked(result)
    return _with_digest(safe, result)


def _with_digest(safe: JsonObject, whole: JsonObject) -> JsonObject:
    """In the place of the state between two rounds: it can be told from others, and nothing else."""
    if (state := whole.get(STATE_KEY)) is not None:
        safe[STATE_KEY] = blake2b(encode(state), key=_DIGEST_KEY, digest_size=DIGEST_BYTES).hexdigest()
    return safe


def masked_answer(answer: Any) -> Any:
    """What a person filled in is never kept: of each field only that there was one."""
    if isinstance(answer, dict) and isinstance(content := answer.get("content"), dict) and "action" in answer:
        return masked(answer) | {"content": dict.fromkeys(content, MASK)}
    return masked(answer)
