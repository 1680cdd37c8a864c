"""A resource or prompt as content: JSON for the model first, then blocks for the client."""

import base64
import json

from emceepee.tools.content import REPEATED_TEXT, prompt_content, resource_content, result_of
from emceepee.tools.declaration.declaration import BackendResult, OwnResult
from emceepee.wire.json_types import JsonObject

PIXELS = base64.b64encode(b"0123456789").decode()


def first(blocks: list[JsonObject]) -> JsonObject:
    value = json.loads(blocks[0]["text"])
    assert isinstance(value, dict)
    return value


def test_a_text_resource_is_returned_as_json_and_as_text() -> None:
    result: JsonObject = {"contents": [{"uri": "a:b", "mimeType": "text/plain", "text": "hello", "odd": 1}], "ttlMs": 5}
    blocks = resource_content(result)
    assert (first(blocks), blocks[1:]) == (result, [{"type": "text", "text": "hello"}])


def test_a_long_text_resource_is_not_repeated() -> None:
    for length, count in ((REPEATED_TEXT, 2), (REPEATED_TEXT + 1, 1)):
        result: JsonObject = {"contents": [{"uri": "a:b", "text": "x" * length}]}
        assert (first(resource_content(result)), len(resource_content(result))) == (result, count)


def test_images_and_audio_become_blocks_and_only_their_size_is_in_the_json() -> None:
    image = {"uri": "a:i", "mimeType": "image/png", "blob": PIXELS}
    sound = {"uri": "a:s", "mimeType": "audio/wav", "blob": PIXELS}
    other = {"uri": "a:o", "mimeType": "application/zip", "blob": PIXELS}
    blocks = resource_content({"contents": [image, sound, other]})
    assert first(blocks)["contents"] == [part | {"blob": "(10 bytes)"} for part in (image, sound, other)]
    assert blocks[1:] == [
        {"type": "image", "data": PIXELS, "mimeType": "image/png"},
        {"type": "audio", "data": PIXELS, "mimeType": "audio/wav"},
        {"type": "resource", "resource": other},
    ]


def test_prompt_messages_become_blocks_of_any_type() -> None:
    text = {"type": "text", "text": "Look:"}
    image = {"type": "image", "data": PIXELS, "mimeType": "image/png"}
    inside = {"type": "resource", "resource": {"uri": "a:b", "blob": PIXELS}}
    novel = {"type": "hologram", "x": 1}
    messages = [{"role": "user", "content": block} for block in (text, image, inside)]
    result: JsonObject = {"messages": [*messages, {"role": "user", "content": [novel]}], "description": "d"}
    blocks = prompt_content(result)
    assert blocks[1:] == [text, image, inside, novel]
    shown = [message["content"] for message in first(blocks)["messages"]]
    assert shown == [
        text,
        image | {"data": "(10 bytes)"},
        {**inside, "resource": {"uri": "a:b", "blob": "(10 bytes)"}},
        [novel],
    ]


def test_malformed_resources_and_prompts_are_returned_unchanged() -> None:
    odd: JsonObject
    for odd in ({"contents": "none"}, {"contents": [1, None, {"blob": 5}]}, {}):
        assert first(resource_content(odd)) == odd
    for odd in ({"messages": {}}, {"messages": ["x", {"content": "y"}, {"content": [3]}]}, {}):
        assert first(prompt_content(odd)) == odd


def test_structured_content_is_complete_and_a_tool_result_is_unchanged() -> None:
    result: JsonObject = {"contents": [{"uri": "a:i", "mimeType": "image/png", "blob": PIXELS}]}
    read = result_of("resources/read", result)
    assert isinstance(read, OwnResult)
    assert read.value is result
    assert result_of("tools/call", result) == BackendResult(result)
