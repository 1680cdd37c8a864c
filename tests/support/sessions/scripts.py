"""Scripts of code mode in a scene."""

from typing import Any, cast

from emceepee.wire.json_types import JsonObject
from support.backends.catalog_backend import catalog_backend, object_schema, structured_result, text_result
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.replies import own_part
from support.sessions.scene import Scene

TEXT: JsonObject = {"type": "string"}


def issue_tracker() -> ScriptedBackend:
    """A server whose tools say what they were called with, or fail."""

    def answer(tool: str, arguments: JsonObject) -> JsonObject:
        if tool == "close-issue":
            return text_result(f"no issue {arguments.get('number')}", isError=True)
        if tool == "read_text":
            return text_result("plain words")
        return structured_result({"tool": tool, "arguments": arguments})

    return catalog_backend(
        answer,
        **{
            "create-issue": object_schema(
                ["title"],
                title=TEXT,
                labels={"type": "array", "items": TEXT},
                priority={"enum": ["low", "high"]},
                **{"from": TEXT},
            ),
            "close-issue": object_schema(["number"], number={"type": "integer"}),
            "read_text": object_schema(),
        },
    )


async def run(scene: Scene, code: str, **arguments: Any) -> JsonObject:
    """Run a script, and return its result or its failure."""
    result = await scene.call("codemode_execute", code=code, **arguments)
    value = own_part(cast(JsonObject, result["structuredContent"]))
    assert set(value) == {"success", "result" if value["success"] else "error", "logs", "stats"}
    assert bool(result.get("isError")) is not value["success"], result
    return value


async def result_of(scene: Scene, code: str, **arguments: Any) -> Any:
    """The result of a script that must succeed."""
    value = await run(scene, code, **arguments)
    assert value["success"], value
    return value["result"]


async def failure_of(scene: Scene, code: str, **arguments: Any) -> JsonObject:
    """The error of a script that must fail."""
    value = await run(scene, code, **arguments)
    assert not value["success"], value
    return cast(JsonObject, value["error"])
