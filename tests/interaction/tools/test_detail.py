"""Every list supports less detail per entry, and pages; omitted entries are counted."""

import json

import pytest

from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.asking import a_task, elicit, sample
from support.sessions.scene import Scene, a_scene

LISTS = {
    "list_servers": ("servers", "name"),
    "list_tools": ("tools", "name"),
    "list_tasks": ("tasks", "taskId"),
    "list_timers": ("timers", "timerId"),
    "get_elicitations": ("requests", "requestId"),
    "get_sampling_requests": ("requests", "requestId"),
}
EACH = pytest.mark.parametrize("tool", LISTS)


async def fill(scene: Scene) -> None:
    for number in range(3):
        await a_task(scene)
        await scene.value("set_timer", duration_ms=60_000, message=f"later {number}")
        elicit(scene.backends["one"], f"question {number}")
        sample(scene.backends["one"])
    await settle()


def own(result: JsonObject, key: str) -> list[JsonObject]:
    return list(result["structuredContent"][key])


@EACH
async def test_names_and_summaries_are_shorter_than_full_entries(tool: str) -> None:
    key, name = LISTS[tool]
    async with a_scene(
        one=ScriptedBackend(tools=["a", "b", "c"]), two=ScriptedBackend(), three=ScriptedBackend()
    ) as scene:
        await fill(scene)
        full, summary, names = [own(await scene.call(tool, detail=how), key) for how in ("full", "summary", "names")]
        assert len(full) == len(summary) == len(names) >= 3
        assert {frozenset(entry) - {"server"} for entry in names} == {frozenset({name})}
        assert len(json.dumps(names)) < len(json.dumps(summary)) < len(json.dumps(full))
        assert own(await scene.call(tool), key) == full


@EACH
async def test_cursors_lead_through_all_pages_of_a_list(tool: str) -> None:
    key, _ = LISTS[tool]
    async with a_scene(
        one=ScriptedBackend(tools=["a", "b", "c"]), two=ScriptedBackend(), three=ScriptedBackend()
    ) as scene:
        await fill(scene)
        whole = {json.dumps(entry) for entry in own(await scene.call(tool), key)}
        seen: list[str] = []
        page = (await scene.call(tool, limit=2))["structuredContent"]
        while True:
            seen += [json.dumps(entry) for entry in page[key]]
            if "nextCursor" not in page:
                break
            page = (await scene.call(tool, limit=2, cursor=page["nextCursor"]))["structuredContent"]
        assert len(seen) == len(whole)
        assert set(seen) == whole


async def test_a_reply_over_the_size_limit_explains_how_to_continue() -> None:
    async with a_scene(limits=Limits(list_reply_bytes=400), one=ScriptedBackend()) as scene:
        await fill(scene)
        found = await scene.value("list_timers")
        assert found["note"] == "A reply has at most 400 bytes. list_timers(cursor=…) returns more."
        assert found["remaining"] == 3 - len(found["timers"])


async def test_notifications_and_logs_over_the_size_limit_wait_for_the_next_call() -> None:
    async with a_scene(limits=Limits(list_reply_bytes=300), one=ScriptedBackend()) as scene:
        buffers = scene.session.buffers("one")
        buffers.notifications.take_all()
        for number in range(5):
            buffers.add_notification("n", {"number": number}, scene.clock.now())
            buffers.add_log_message({"level": "info", "data": f"line {number}"}, scene.clock.now())
        looked = await scene.call("get_notifications", detail="names")
        assert own(looked, "notifications")[0] == {"server": "one", "method": "n"}
        told: list[int] = []
        lines: list[str] = []
        for _ in range(5):
            found = await scene.value("get_notifications")
            told += [entry["params"]["number"] for entry in found["notifications"]]
            logs = await scene.value("get_logs")
            lines = [entry["data"] for entry in logs["logs"]] + lines
            assert found.get("remaining", 0) == 5 - len(told)
            assert logs.get("remaining", 0) == 5 - len(lines)
        assert told == list(range(5))
        assert lines == [f"line {number}" for number in range(5)]


async def test_the_arguments_for_detail_are_listed_for_long_lists_and_accepted_everywhere() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        assert await scene.value("list_timers", limit=1, detail="full") == {"timers": []}
        error = await scene.error("list_timers", detail="some")
        assert error["code"] == "ERR_INVALID_ARGUMENTS"
