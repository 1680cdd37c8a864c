"""A scripted backend whose tools have schemas, and are answered by functions of the test."""

from collections.abc import Awaitable, Callable
from typing import Any

from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend

ToolAnswer = Callable[[JsonObject], Any | Awaitable[Any]]


def text_result(text: str, **more: Any) -> JsonObject:
    return {"content": [{"type": "text", "text": text}]} | more


def structured_result(value: JsonObject) -> JsonObject:
    return text_result("see structuredContent", structuredContent=value)


def object_schema(required: list[str] | None = None, **properties: JsonObject) -> JsonObject:
    return {"type": "object", "properties": properties, "required": required or []}


def catalog_backend(answer: Callable[[str, JsonObject], JsonObject], **schemas: JsonObject) -> ScriptedBackend:
    """Its tools by name, with their input schemas; `answer` gets a tool's name and its arguments."""
    backend = ScriptedBackend()
    tools = [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]
    backend.answers["tools/list"] = lambda _: {"tools": tools}
    backend.answers["tools/call"] = lambda params: answer(params["name"], params.get("arguments") or {})
    return backend
