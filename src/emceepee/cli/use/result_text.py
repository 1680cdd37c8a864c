"""Format servers' results for people."""

import json
from typing import Any

from emceepee.wire.json_types import JsonObject


def result_text(result: JsonObject) -> str:
    """Return the content blocks as text, or the structured content if they are empty."""
    content = result.get("content")
    lines = [block_text(block) for block in content if isinstance(block, dict)] if isinstance(content, list) else []
    if not any(lines) and result.get("structuredContent") is not None:
        return json.dumps(result["structuredContent"], ensure_ascii=False, indent=2)
    return "\n".join(lines)


def block_text(block: JsonObject) -> str:
    """Return the block as text. Other kinds become a placeholder, for binary data with its size."""
    match block.get("type"):
        case "text":
            return str(block.get("text", ""))
        case "image" | "audio" as kind:
            return f"[{kind}, {block.get('mimeType')}, {_size(block.get('data'))} bytes; --json has it]"
        case "resource":
            resource = block.get("resource")
            return contents_text(resource) if isinstance(resource, dict) else "[a resource]"
        case "resource_link":
            return f"[{block.get('name') or 'resource'}: {block.get('uri')}]"
        case kind:
            return f"[{kind}: {json.dumps(block, ensure_ascii=False)[:200]}]"


def contents_text(contents: JsonObject) -> str:
    if isinstance(text := contents.get("text"), str):
        return text
    return f"[{contents.get('uri')}, {contents.get('mimeType') or 'binary'}, {_size(contents.get('blob'))} bytes]"


def _size(data: Any) -> int:
    return len(data) * 3 // 4 if isinstance(data, str) else 0
