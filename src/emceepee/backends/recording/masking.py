"""What a recording does not keep: secrets, by the rules that hold for logs and the console, and answers to forms.

A masked value keeps its type, so that what is replayed still fits the schemas of its server. Requests are masked in the
same way before they are compared with recorded ones.
"""

from typing import Any

from emceepee.codec import decode
from emceepee.json_types import JsonObject
from emceepee.telemetry.redaction import MASK, redacted

# Names in a schema are names, not values: `{"properties": {"token": …}}` tells nothing.
SCHEMA_KEYS = frozenset({"inputSchema", "outputSchema", "requestedSchema"})
NEVER_KEPT = frozenset({"_meta", "progressToken"})  # of one conversation only, and of no use in another


def masked(value: Any) -> Any:
    """The same without secrets."""
    if isinstance(value, dict):
        return {key: item if key in SCHEMA_KEYS else _masked_item(key, item) for key, item in value.items()}
    if isinstance(value, list):
        return [masked(item) for item in value]
    return _masked_text(value) if isinstance(value, str) else value


def _masked_item(key: str, item: Any) -> Any:
    if isinstance(item, bool) or item is None or redacted("", name=key) != MASK:
        return masked(item)
    if isinstance(item, str):
        return MASK
    return 0 if isinstance(item, int | float) else type(item)()


def _masked_text(text: str) -> str:
    """JSON in which nothing had to be masked stays as it was written."""
    kept = str(redacted(text))
    if kept == text or text[:1] not in ("{", "["):
        return kept
    try:
        return text if decode(kept.encode()) == decode(text.encode("utf-8", "replace")) else kept
    except ValueError:
        return kept


def masked_params(params: JsonObject | None) -> JsonObject:
    """Of a request or a notification, without what belongs to one conversation only."""
    kept = {key: item for key, item in (params or {}).items() if key not in NEVER_KEPT}
    responses = kept.pop("inputResponses", None)
    safe: JsonObject = masked(kept)
    if isinstance(responses, dict):
        safe["inputResponses"] = {key: masked_answer(answer) for key, answer in responses.items()}
    return safe


def masked_answer(answer: Any) -> Any:
    """What a person filled in is never kept: of each field only that there was one."""
    if isinstance(answer, dict) and isinstance(content := answer.get("content"), dict) and "action" in answer:
        return masked(answer) | {"content": dict.fromkeys(content, MASK)}
    return masked(answer)
