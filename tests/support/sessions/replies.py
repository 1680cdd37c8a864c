"""A backend's result as emceepee passed it on, told apart from what emceepee adds after it."""

import json
from typing import Any

NOTICE_KEYS = (
    *("events_since_last_response", "more", "events_dropped", "pending_client_action", "session_moved"),
    "state_not_saved",
)


def notice_in(text: str) -> dict[str, Any] | None:
    """The notice in the text of a block, behind its line of words; None if the block is none of emceepee's notices."""
    words, _, line = text.partition("\n")
    try:
        said = json.loads(line)
    except ValueError:
        return None
    is_notice = isinstance(said, dict) and bool(said) and set(said) <= set(NOTICE_KEYS)
    return said if is_notice and words and not words.startswith(("{", "[")) else None


def said_in(text: str) -> Any:
    """The JSON of a block: a result of emceepee's own, or a notice."""
    notice = notice_in(text)
    return json.loads(text) if notice is None else notice


def backend_part(result: dict[str, Any]) -> dict[str, Any]:
    """The result without the blocks in which emceepee tells of events and open questions."""
    content = list(result.get("content", []))
    while content and _is_own(content[-1]):
        content.pop()
    structured = result.get("structuredContent")
    if not isinstance(structured, dict):
        return result | {"content": content}
    own = {key: value for key, value in structured.items() if key != "emceepee"}
    return result | {"content": content, "structuredContent": own}


def own_part(structured: dict[str, Any]) -> dict[str, Any]:
    """The structured content of one of emceepee's own tools, without the notices beside it."""
    return {key: value for key, value in structured.items() if key not in NOTICE_KEYS}


def without_help(error: dict[str, Any]) -> dict[str, Any]:
    """The error of a reply, without the address of the page about its code, which must be there."""
    details = dict(error["details"])
    assert details.pop("help").endswith(f"/{error['code']}.html")
    return error | {"details": details}


def text_of(result: dict[str, Any]) -> str:
    """The text of the first block."""
    return str(result["content"][0]["text"])


def told_events(result: dict[str, Any]) -> list[dict[str, Any]]:
    """The events that a reply tells: all in its structured content, in its blocks without what its own words say."""
    structured = result.get("structuredContent")
    told = structured.get("emceepee", structured) if isinstance(structured, dict) else {}
    if isinstance(told, dict) and "events_since_last_response" in told:
        return list(told["events_since_last_response"])
    blocks = [notice_in(block.get("text", "")) or {} for block in result["content"][1:]]
    return [event for block in blocks for event in block.get("events_since_last_response", [])]


def has_moved(result: dict[str, Any]) -> bool:
    """Whether it says that another replica has the session by now."""
    return any(_is_own(block) and "session_moved" in block["text"] for block in result.get("content", []))


def _is_own(block: dict[str, Any]) -> bool:
    return notice_in(block.get("text", "")) is not None
