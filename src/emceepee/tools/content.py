"""Converts a backend's resource or prompt to the content of a reply."""

from collections.abc import Callable, Mapping
from typing import Any

from emceepee.tools.declaration.declaration import NO_MENTIONS, BackendResult, InputRequired, Mentions, OwnResult
from emceepee.wire.codec import encode_text
from emceepee.wire.json_types import JsonObject

CallResult = BackendResult | InputRequired | OwnResult[Mapping[str, Any]]
REPEATED_TEXT = 4096  # characters; only the first block contains a longer text, because repeating it costs context
LARGE_RESULT = "large_result"  # the key in a reply for the handle of an omitted result
MEDIA = ("image", "audio")


def text_block(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def result_of(method: str, result: JsonObject, mentions: Mentions = NO_MENTIONS) -> CallResult:
    """Return a backend's answer to this method in the form that the tools return."""
    match method:
        case "resources/read":
            return OwnResult(resource_content(result), result, mentions)
        case "prompts/get":
            return OwnResult(prompt_content(result), result, mentions)
        case "codemode/execute":
            failed = result.get("isError") is True
            return OwnResult(result["content"], result["structuredContent"], mentions, is_error=failed)
        case _:
            return BackendResult(result, mentions)


def resource_content(result: JsonObject) -> list[JsonObject]:
    """Return the result as JSON with blobs replaced by their size, then each part as a block that a client can show."""
    blocks = [block for part in _objects(result.get("contents")) for block in _part_blocks(part)]
    return [_as_json(result, "contents", _without_blob), *blocks]


def prompt_content(result: JsonObject) -> list[JsonObject]:
    """Return the prompt as JSON with blobs replaced by their size, then the content of its messages as blocks."""
    blocks = [block for message in _objects(result.get("messages")) for block in _blocks_of(message)]
    return [_as_json(result, "messages", _message_without_blobs), *(item for item in blocks if not _is_long_text(item))]


def _as_json(result: JsonObject, key: str, shorten: Callable[[JsonObject], JsonObject]) -> JsonObject:
    items = result.get(key)
    if isinstance(items, list):
        result = result | {key: [shorten(item) if isinstance(item, dict) else item for item in items]}
    return text_block(encode_text(result))


def _part_blocks(part: JsonObject) -> list[JsonObject]:
    blob, mime = part.get("blob"), str(part.get("mimeType") or "")
    if isinstance(blob, str):
        kind = mime.partition("/")[0]
        if kind in MEDIA:
            return [{"type": kind, "data": blob, "mimeType": mime}]
        return [{"type": "resource", "resource": part}]
    text = part.get("text")
    return [text_block(text)] if isinstance(text, str) and len(text) <= REPEATED_TEXT else []


def _blocks_of(message: JsonObject) -> list[JsonObject]:
    content = message.get("content")
    return _objects(content if isinstance(content, list) else [content])


def _message_without_blobs(message: JsonObject) -> JsonObject:
    content = message.get("content")
    if isinstance(content, list):
        return message | {"content": [_block_without_blob(block) for block in content]}
    return message | {"content": _block_without_blob(content)} if isinstance(content, dict) else message


def _block_without_blob(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    if block.get("type") in MEDIA and isinstance(block.get("data"), str):
        return block | {"data": _size(block["data"])}
    resource = block.get("resource")
    return block | {"resource": _without_blob(resource)} if isinstance(resource, dict) else block


def _without_blob(part: JsonObject) -> JsonObject:
    blob = part.get("blob")
    return part | {"blob": _size(blob)} if isinstance(blob, str) else part


def _size(base64: str) -> str:
    return f"({len(base64.rstrip('=')) * 3 // 4} bytes)"


def _is_long_text(block: JsonObject) -> bool:
    return block.get("type") == "text" and len(str(block.get("text", ""))) > REPEATED_TEXT


def _objects(value: Any) -> list[JsonObject]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
