"""A backend's result as emceepee passed it on, told apart from what emceepee adds after it."""

import json
from typing import Any

OWN_BLOCKS = ({"events_since_last_response"}, {"pending_client_action"})


def backend_part(result: dict[str, Any]) -> dict[str, Any]:
    """The result without the blocks in which emceepee tells of events and open questions."""
    content = list(result.get("content", []))
    while content and _is_own(content[-1]):
        content.pop()
    return result | {"content": content}


def text_of(result: dict[str, Any]) -> str:
    """The text of the first block."""
    return str(result["content"][0]["text"])


def _is_own(block: dict[str, Any]) -> bool:
    try:
        said = json.loads(block.get("text", ""))
    except ValueError:
        return False
    return isinstance(said, dict) and set(said) in OWN_BLOCKS
