"""A result over the limit is returned as its head, its shape, and a handle for reading all of it."""

import asyncio
import json
import threading
from typing import Any

import pytest

from emceepee.sessions.results.stored_results import CHUNK_BYTES
from emceepee.state.limits import Limits
from emceepee.tools import result_tools as results
from emceepee.tools.excerpts import large_results
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.asking import a_call, a_task, hush, task_id
from support.sessions.machine import Machine
from support.sessions.request_contexts import call_tool
from support.sessions.scene import Scene, a_scene

LINES = "".join(f"{number}: größe {'x' * (number % 50)}\n" for number in range(20_000))
ROWS: JsonObject = {"rows": [{"id": number, "name": f"name {number}"} for number in range(5000)], "next": None}
IMAGE: JsonObject = {"type": "image", "data": "AAAA" * 1000, "mimeType": "image/png"}
SPANS = pytest.mark.parametrize("text", [LINES, json.dumps(ROWS), "é" * 10_000], ids=["lines", "json", "one line"])


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


async def called(scene: Scene, *, max_bytes: int | None = 2000, **result: Any) -> JsonObject:
    await hush(scene)
    call, asked = await a_call(scene, "one", **({} if max_bytes is None else {"max_bytes": max_bytes}))
    asked.reply(**result)
    return await call


def info(result: JsonObject) -> JsonObject:
    return dict(result["structuredContent"]["large_result"])


async def read_whole(scene: Scene, handle: str, limit: int) -> str:
    """Part by part, from the beginning to the end."""
    found, offset = "", 0
    while True:
        part = await scene.value("read_result", handle=handle, offset=offset, limit=limit)
        found += str(part["text"])
        if "nextOffset" not in part:
            return found
        offset = part["nextOffset"]


async def test_without_a_limit_a_result_is_returned_unchanged() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        sent = {"content": [text(LINES)], "structuredContent": ROWS, "_meta": {"a": 1}}
        assert await called(scene, max_bytes=None, **sent) == sent
        assert await called(scene, max_bytes=10_000_000, **sent) == sent
        assert len(scene.session.results) == 0


async def test_a_large_result_is_outlined_and_searched_outside_of_the_event_loop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    threads: dict[str, int] = {}
    for module, name in ((large_results, "Outline"), (results, "Selection")):
        original = getattr(module, name)

        def noted(*args: Any, name: str = name, original: Any = original, **kwargs: Any) -> Any:
            threads[name] = threading.get_ident()
            return original(*args, **kwargs)

        monkeypatch.setattr(module, name, noted)
    async with a_scene(one=ScriptedBackend()) as scene:
        handle = info(await called(scene, content=[text(json.dumps(ROWS))]))["handle"]
        await scene.value("read_result", handle=handle, jsonpath="$.rows[*].id")
    assert threads.keys() == {"Outline", "Selection"}
    assert threading.get_ident() not in threads.values()


@SPANS
@pytest.mark.parametrize("limit", [997, 100_000])
async def test_a_large_text_is_read_losslessly_in_parts(text: str, limit: int) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        result = await called(scene, content=[{"type": "text", "text": text}])
        told = info(result)
        assert told["bytes"] == len(text.encode())
        assert await read_whole(scene, told["handle"], limit) == text
        assert len(json.dumps(result["content"], ensure_ascii=False).encode()) < 2600


async def test_the_head_of_a_text_ends_where_the_next_part_begins() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        result = await called(scene, content=[text("ab" + "é" * 9000)], isError=True, _meta={"k": 1})
        head = result["content"][0]["text"]
        assert (result["isError"], result["_meta"]) == (True, {"k": 1})
        assert info(result)["head"] == head
        assert info(result)["shape"] == "text, 1 lines"
        assert f"offset={len(head.encode())} continues" in info(result)["next"]
        assert json.loads(result["content"][-1]["text"])["large_result"]["handle"] == info(result)["handle"]


@pytest.mark.parametrize("indent", [None, 2])
async def test_structured_content_that_equals_the_text_is_stored_once(indent: int | None) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        words = json.dumps(ROWS, indent=indent, separators=(",", ":") if indent is None else None)
        result = await called(scene, content=[text(words)], structuredContent=ROWS)
        told = info(result)
        assert told["shape"] == "{rows: [{id: number, name: string} x5000], next: null}"
        assert json.loads(result["content"][0]["text"]) == told["head"]
        assert told["head"]["rows"][0] == {"id": 0, "name": "name 0"}
        assert await read_whole(scene, told["handle"], 50_000) == words
        found = await scene.value("read_result", handle=told["handle"], jsonpath="$.rows[-1]")
        assert found["values"] == [{"path": "$.rows[4999]", "value": {"id": 4999, "name": "name 4999"}}]


async def test_any_other_content_is_stored_as_json_and_images_pass() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        blocks = [text("first " * 500), IMAGE, {"type": "odd", "value": [1, {"a": None}]}]
        result = await called(scene, content=blocks, structuredContent={"other": 1})
        assert result["content"][1] == IMAGE
        kept = json.loads(await read_whole(scene, info(result)["handle"], 1000))
        assert kept == {"content": [blocks[0], blocks[2]], "structuredContent": {"other": 1}}


async def test_an_image_is_returned_in_full_at_any_size() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        assert await called(scene, max_bytes=100, content=[IMAGE]) == {"content": [IMAGE]}


async def test_the_operator_sets_the_limit_for_callers_that_specify_none() -> None:
    async with a_scene(limits=Limits(largest_result_bytes=5000), one=ScriptedBackend()) as scene:
        assert info(await called(scene, max_bytes=None, content=[text(LINES)]))["bytes"] == len(LINES.encode())
        assert await called(scene, max_bytes=1 << 30, content=[text(LINES)]) == {"content": [text(LINES)]}


async def test_the_limit_applies_to_resources_and_task_results() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        reading = scene.start("read_resource", server="one", uri="file:///a", max_bytes=1000)
        asked = await scene.backends["one"].next_asked("resources/read")
        picture = {"uri": "file:///b", "mimeType": "image/png", "blob": "AAAA"}
        asked.reply(contents=[{"uri": "file:///a", "text": LINES}, picture])
        result = await reading
        assert await read_whole(scene, info(result)["handle"], 100_000) == LINES
        assert result["structuredContent"]["contents"] == [picture]
        assert result["content"][1] == {"type": "image", "data": "AAAA", "mimeType": "image/png"}
        task, asked = await a_task(scene)
        asked.reply(content=[text(LINES)])
        assert info(await scene.call("get_task_result", task_id=task, max_bytes=1000))["bytes"] == len(LINES.encode())
        assert (await scene.call("get_task_result", task_id=task))["content"][0] == text(LINES)


async def test_the_limit_applies_to_prompts_and_their_images_pass() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        getting = scene.start("get_prompt", server="one", name="p", max_bytes=1000)
        asked = await scene.backends["one"].next_asked("prompts/get")
        spoken = [{"role": "user", "content": text(LINES)}, {"role": "assistant", "content": [text("yes")]}]
        seen = {"role": "user", "content": IMAGE}
        asked.reply(description="d", messages=[*spoken, seen], _meta={"k": 1})
        result = await getting
        assert json.loads(await read_whole(scene, info(result)["handle"], 100_000)) == {"messages": spoken}
        value = result["structuredContent"]
        assert (value["messages"], value["description"], value["_meta"]) == ([seen], "d", {"k": 1})
        assert result["content"][1] == IMAGE
        assert info(result)["shape"].startswith("{messages: [{role: string, content: ")


async def test_a_script_reads_results_in_full_with_any_limit_of_the_operator() -> None:
    async with a_scene(limits=Limits(largest_result_bytes=1000), one=ScriptedBackend()) as scene:
        code = """
said = await mcp.call_tool("one", "t")
read = await mcp.read_resource("one", "file:///a")
(len(said), len(read))
"""
        running = scene.start("codemode_execute", code=code)
        (await scene.backends["one"].next_asked("tools/call")).reply(content=[text(LINES)])
        asked = await scene.backends["one"].next_asked("resources/read")
        asked.reply(contents=[{"uri": "file:///a", "text": LINES}])
        assert (await running)["structuredContent"]["result"] == [len(LINES), len(LINES)]


@pytest.mark.parametrize("tool", ["get_task_result", "codemode_execute"])
async def test_the_limit_applies_to_the_result_of_a_script_that_became_a_task(tool: str) -> None:
    limits = Limits(largest_result_bytes=1000 if tool == "codemode_execute" else 0)
    async with a_scene(limits=limits, one=ScriptedBackend()) as scene:
        code = 'x = await mcp.call_tool("one", "t")\n["row"] * 900'
        running = scene.start("codemode_execute", code=code, timeout=1)
        asked = await scene.backends["one"].next_asked("tools/call")
        await scene.clock.advance(1)
        task = task_id(await running)
        asked.reply(content=[])
        given: JsonObject = {"max_bytes": 1000} if tool == "get_task_result" else {}
        result = await scene.call(tool, task_id=task, **given)
        whole = json.loads(await read_whole(scene, info(result)["handle"], 100_000))
        assert (whole["success"], whole["result"]) == (True, ["row"] * 900)
        assert info(result)["shape"].startswith("{success: boolean, result: [string x900]")


# Looking into it.


async def test_matching_lines_are_found_with_their_numbers_and_offsets() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        handle = info(await called(scene, content=[text(LINES)]))["handle"]
        found = await scene.value("read_result", handle=handle, grep="^1999\\d: größe x*$", limit=500)
        assert found["lines"][0]["line"] == 19_991
        assert found["lines"][0]["text"] == LINES.splitlines()[19_990]
        place = found["lines"][0]["offset"]
        again = await scene.value("read_result", handle=handle, offset=place, limit=10)
        assert again["text"].startswith("19990: gr")
        more = await scene.value("read_result", handle=handle, grep="^1999\\d", offset=found["nextOffset"])
        numbers = [line["line"] for line in [*found["lines"], *more["lines"]]]
        assert numbers == list(range(19_991, 20_001))


async def test_values_are_found_page_by_page_and_a_large_one_by_its_shape() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        handle = info(await called(scene, structuredContent=ROWS, content=[]))["handle"]
        seen: list[int] = []
        offset: int | None = 0
        while offset is not None:
            part = await scene.value(
                "read_result", handle=handle, jsonpath="$.structuredContent.rows[*].id", offset=offset, limit=40_000
            )
            seen += [entry["value"] for entry in part["values"]]
            offset = part.get("nextOffset")
        assert seen == list(range(5000))
        (whole,) = (await scene.value("read_result", handle=handle, jsonpath="$.structuredContent"))["values"]
        assert whole["shape"] == "{rows: [{id: number, name: string} x5000], next: null}"
        assert whole["preview"]["rows"][0] == {"id": 0, "name": "name 0"}
        nothing = await scene.value("read_result", handle=handle, jsonpath="$.rows")
        assert (nothing["values"], nothing["note"]) == ([], "$ has the keys content, structuredContent")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"grep": "("}, "grep is not a usable regular expression: missing ) at position 0"),
        ({"grep": "a", "jsonpath": "$"}, "grep, jsonpath: give one of them."),
        ({"jsonpath": "$.a"}, "jsonpath: this result is no JSON object or list"),
        ({"jsonpath": "$..a"}, "descending with .. is not supported"),
        ({"limit": 0}, "limit: must be at least 1"),
        ({"offset": -1}, "offset: must be at least 0"),
    ],
)
async def test_invalid_arguments_for_reading_a_result_are_rejected_with_the_reason(
    given: JsonObject, problem: str
) -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        handle = info(await called(scene, content=[text(LINES)]))["handle"]
        error = await scene.error("read_result", **({"handle": handle} | given))
        assert error["code"] == "ERR_INVALID_ARGUMENTS"
        assert problem in error["message"]


async def test_an_offset_past_the_end_returns_nothing() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        handle = info(await called(scene, content=[text("é" * 3000)]))["handle"]
        part = await scene.value("read_result", handle=handle, offset=1 << 40)
        assert (part["text"], "nextOffset" in part) == ("", False)
        inside = await scene.value("read_result", handle=handle, offset=5, limit=1)
        assert (inside["offset"], inside["text"], inside["nextOffset"]) == (4, "é", 6)


# How long it is kept.


async def test_the_oldest_results_are_evicted_first_and_the_error_lists_the_stored_ones() -> None:
    async with a_scene(limits=Limits(results_per_session=2), one=ScriptedBackend()) as scene:
        handles = [info(await called(scene, content=[text(LINES)]))["handle"] for _ in range(3)]
        error = await scene.error("read_result", handle=handles[0])
        assert error["code"] == "ERR_RESULT_NOT_FOUND"
        assert "A session stores its last 2 large results" in error["message"]
        for handle in handles[1:]:
            assert await read_whole(scene, handle, 1 << 20) == LINES


async def test_the_total_size_of_stored_results_per_session_is_bounded() -> None:
    size = len(LINES.encode())
    async with a_scene(limits=Limits(result_bytes_per_session=2 * size + 10), one=ScriptedBackend()) as scene:
        handles = [info(await called(scene, content=[text(LINES)]))["handle"] for _ in range(4)]
        assert [scene.session.stored_result(handle) is not None for handle in handles] == [False, False, True, True]


async def test_result_handles_survive_the_process_with_durable_state() -> None:
    machine = Machine()
    async with machine.process() as place:
        key, session = await place.directory.open("local")
        calling = asyncio.create_task(
            call_tool(
                {"name": "execute_tool", "arguments": {"server": "one", "tool": "slow", "max_bytes": 1000}}, session
            )
        )
        (await place.backend.next_asked()).reply(content=[text(LINES)])
        handle = info(await calling)["handle"]
        kept = session.stored_result(handle)
        assert kept is not None
        assert kept.is_stored
        assert kept.chunks == -(-kept.size // CHUNK_BYTES)
    async with machine.process() as place:
        again = await place.directory.use(key)
        assert again is not None
        asked = {"name": "read_result", "arguments": {"handle": handle, "grep": "^19999"}}
        found = await call_tool(asked, again)
        assert found["structuredContent"]["lines"][0]["text"] == LINES.splitlines()[-1]


async def test_a_result_handle_is_invalid_in_another_session() -> None:
    machine = Machine()
    async with machine.process() as place:
        _, one = await place.directory.open("local")
        _, two = await place.directory.open("local")
        kept = await one.results.keep(LINES.encode(), is_json=False)
        denied = await call_tool({"name": "read_result", "arguments": {"handle": kept.handle}}, two)
        assert denied["structuredContent"]["error"]["code"] == "ERR_RESULT_NOT_FOUND"
        await one.close()
        assert kept.is_stored


DEEP = '{"a": ' + "[" * 250 + "]" * 250 + ', "b": "' + "x" * 3000 + '"}'
WIDE = json.dumps([[]] * 4000 + [{"id": 7}])


async def test_a_result_search_that_ends_early_explains_how_to_continue(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results, "MOST_VISITED", 3000)
    async with a_scene(one=ScriptedBackend()) as scene:
        handle = info(await called(scene, content=[text(WIDE)]))["handle"]
        part = await scene.value("read_result", handle=handle, jsonpath="$[*].id")
        assert part["values"] == []
        assert part["note"].startswith("The search ended after 0 matches, because it takes more than 3000 values.")
        assert part["note"].endswith("grep finds text at any depth; offset and limit read bytes.")
        assert "nextOffset" not in part
        few = await scene.value("read_result", handle=handle, jsonpath="$[*]", limit=300)
        assert few["nextOffset"] == len(few["values"]) > 1


async def test_a_value_that_is_nested_too_deeply_is_rejected_with_a_message() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        result = info(await called(scene, content=[text(DEEP)]))
        assert result["head"]["a"] == "…"
        error = await scene.error("read_result", handle=result["handle"], jsonpath="$.a")
        assert error["message"].startswith("jsonpath: the result is nested deeper than 200 levels there. grep finds")
        part = await scene.value("read_result", handle=result["handle"], jsonpath="$.b", limit=5000)
        assert part["values"] == [{"path": "$.b", "value": "x" * 3000}]


async def test_a_result_that_line_breaks_would_inflate_stays_on_one_line() -> None:
    inner: Any = [0] * 60_000
    for _ in range(150):
        inner = [inner]
    async with a_scene(one=ScriptedBackend()) as scene:
        deep = info(await called(scene, structuredContent={"a": inner}))
        assert deep["bytes"] < 200_000
        flat = info(await called(scene, structuredContent={"a": [0] * 60_000}))
        assert flat["bytes"] > 200_000
