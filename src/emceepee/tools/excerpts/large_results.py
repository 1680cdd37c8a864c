"""Replaces a result over the caller's limit by its head, its shape, and a handle.

One text is stored per result. If the result is one text, possibly repeated as structured content, that text is stored.
Otherwise the result is stored as JSON with line breaks. Images and audio are not stored: they pass unchanged.
"""

import sys
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import msgspec

from emceepee.sessions.results.long_work import Now
from emceepee.sessions.session import Session
from emceepee.state.stored_result import StoredResult
from emceepee.surface import call_to
from emceepee.tools.content import LARGE_RESULT, MEDIA, CallResult, result_of, text_block
from emceepee.tools.declaration.declaration import NO_MENTIONS, Mentions, OwnResult
from emceepee.tools.excerpts.json_members import OPENED_AT_ONCE, is_json
from emceepee.tools.excerpts.outline import Outline
from emceepee.wire.codec import encode, encode_text
from emceepee.wire.json_types import JsonObject

UNLIMITED = sys.maxsize  # as `max_bytes`: skip the check of the size
SHAPE_CHARACTERS = 400
LARGEST_PREVIEW = 1 << 20  # bytes
MOST_INDENTATION = 4  # limit for the indentation, as a multiple of the text
LEAST_HEAD = 200  # bytes, however small the limit is
_ITEMS = {
    "tools/call": "content",
    "resources/read": "contents",
    "prompts/get": "messages",
    "codemode/execute": "content",
}


@dataclass(frozen=True, slots=True)
class _Document:
    """The text of a result, and the media that pass unchanged."""

    text: bytes
    media: list[JsonObject]


async def limited_result(
    method: str, result: JsonObject, max_bytes: int | None, session: Session, mentions: Mentions = NO_MENTIONS
) -> CallResult:
    """Return the result in the form that the tools return, or its head and a handle if it is over the limit."""
    most = max_bytes or session.limits.largest_result_bytes
    if not most or most == UNLIMITED or (document := _document(method, result)) is None or len(document.text) <= most:
        return result_of(method, result, mentions)
    has_shape = is_json(document.text)
    kept = await session.results.keep(document.text, is_json=has_shape)
    info: JsonObject = {"handle": kept.handle, "bytes": kept.size}
    head: Any
    if has_shape:
        end, outlined = None, await _outlined(document.text, most - len(encode(info)), session)
        info["shape"], head = outlined
        words = encode_text(head)
    else:
        info["shape"] = _lines(document.text)
        room = max(most - len(encode(info)) - LEAST_HEAD, LEAST_HEAD)
        end = character_boundary(document.text, room)
        head = words = document.text[:end].decode()
    info["next"] = _next(kept, end)
    return _reply(method, result, document, words, info, head, mentions)


async def _outlined(text: bytes, room: int, session: Session) -> tuple[str, Any]:
    """Return the shape and a preview of a JSON text, which together fit into `room` bytes."""

    def outlined(now: Now = perf_counter) -> tuple[str, Any]:
        outline = Outline(text, now=now)
        shape = outline.shape(SHAPE_CHARACTERS)
        most = max(room - len(encode({"shape": shape})) - LEAST_HEAD, LEAST_HEAD)
        return shape, outline.preview(min(most, LARGEST_PREVIEW))

    return outlined() if len(text) <= OPENED_AT_ONCE else await session.results.outlining.run(outlined)


def _reply(
    method: str,
    result: JsonObject,
    document: _Document,
    words: str,
    info: JsonObject,
    head: Any,
    mentions: Mentions,
) -> CallResult:
    if _ITEMS[method] == "content":
        content = [text_block(words), *document.media, text_block(encode_text({LARGE_RESULT: info}))]
        value = {LARGE_RESULT: info | {"head": head}}
        return result_of(method, {**result, "content": content, "structuredContent": value}, mentions)
    short = {key: value for key, value in result.items() if key != _ITEMS[method]} | {
        LARGE_RESULT: info | {"head": head}
    }
    blocks = result_of(method, {_ITEMS[method]: document.media})
    shown = blocks.content[1:] if isinstance(blocks, OwnResult) else []
    return OwnResult([text_block(encode_text(short)), *shown], short | {_ITEMS[method]: document.media}, mentions)


def _document(method: str, result: JsonObject) -> _Document | None:
    """Return the result's text and media, or None if it has nothing to cut."""
    items = result.get(_ITEMS.get(method, ""))
    items = items if isinstance(items, list) else []
    media = [item for item in items if isinstance(item, dict) and _is_media(item)]
    plain = [item for item in items if not (isinstance(item, dict) and _is_media(item))]
    structured = result.get("structuredContent")
    if len(plain) == 1 and isinstance(plain[0], dict) and isinstance(text := plain[0].get("text"), str):
        encoded = text.encode("utf-8", "replace")
        if structured is None or _is_same(encoded, structured):
            return _Document(encoded, media)
    if not plain and structured is None:
        return None
    whole = {_ITEMS[method]: plain} | ({} if structured is None else {"structuredContent": structured})
    return _Document(_in_lines(encode(whole), whole), media)


def _in_lines(text: bytes, value: Any) -> bytes:
    """Insert line breaks for grep, unless the indentation would take much more space than the text."""
    room = MOST_INDENTATION * len(text)
    level, depth = [value], 0
    while level and len(text) > OPENED_AT_ONCE:
        room -= len(level) * depth
        if room < 0:
            return text
        inner = [item.values() if isinstance(item, dict) else item for item in level if isinstance(item, dict | list)]
        level, depth = [item for items in inner for item in items], depth + 1
    return bytes(msgspec.json.format(text, indent=1))


def _is_media(item: JsonObject) -> bool:
    if "blob" in item:
        return str(item.get("mimeType") or "").partition("/")[0] in MEDIA
    content = item.get("content")
    return item.get("type") in MEDIA or (isinstance(content, dict) and content.get("type") in MEDIA)


def _is_same(text: bytes, structured: Any) -> bool:
    """Return whether the text is that value as JSON, regardless of whitespace."""
    encoded = encode(structured)
    if len(encoded) > len(text):
        return False
    try:
        return bool(msgspec.json.format(text, indent=-1) == encoded)
    except ValueError:
        return False


def _lines(text: bytes) -> str:
    return f"text, {text.count(10) + 1} lines"


def _next(kept: StoredResult, end: int | None) -> str:
    if end is None:
        ways = 'jsonpath="$…" or grep="…" finds a part, offset and limit read bytes'
    else:
        ways = f'offset={end} continues, grep="…" finds lines'
    return f"{call_to('read_result', handle=kept.handle)} reads the rest: {ways}."


def character_boundary(text: bytes, position: int) -> int:
    """Return the last character boundary in UTF-8 text at or before the position."""
    while 0 < position < len(text) and text[position] & 0xC0 == 0x80:
        position -= 1
    return min(position, len(text))
