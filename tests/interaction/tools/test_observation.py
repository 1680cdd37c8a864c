from typing import Any

import pytest

from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.scene import Scene, a_scene


def logged(scene: Scene, server: str, level: str, data: Any) -> None:
    listener = scene.backends[server].link.listener
    listener.handle_notification("notifications/message", {"level": level, "logger": "db", "data": data}, None)


async def data_of(scene: Scene, **arguments: Any) -> list[Any]:
    return [line["data"] for line in (await scene.value("get_logs", **arguments))["logs"]]


async def test_notifications_are_returned_once_in_order_of_time() -> None:
    async with a_scene(a=ScriptedBackend(), b=ScriptedBackend()) as scene:
        scene.backends["b"].link.listener.handle_notification("custom/thing", {"x": None}, None)
        await scene.clock.advance(1)
        scene.backends["a"].link.listener.handle_notification("notifications/prompts/list_changed", {}, None)
        assert await scene.value("get_notifications") == {
            "notifications": [
                {
                    "server": "b",
                    "method": "custom/thing",
                    "timestamp": "2026-01-01T00:00:00.000Z",
                    "params": {"x": None},
                },
                {
                    "server": "a",
                    "method": "notifications/prompts/list_changed",
                    "timestamp": "2026-01-01T00:00:01.000Z",
                },
            ]
        }
        assert await scene.value("get_notifications") == {"notifications": []}


async def test_reading_notifications_of_one_server_leaves_those_of_another() -> None:
    async with a_scene(a=ScriptedBackend(), b=ScriptedBackend()) as scene:
        for backend in scene.backends.values():
            backend.link.listener.handle_notification("x", {}, None)
        for server in ("a", "b", "a"):
            got = (await scene.value("get_notifications", server=server))["notifications"]
            assert [item["server"] for item in got] in ([server], [])
        assert (await scene.value("get_notifications"))["notifications"] == []


@pytest.mark.parametrize("tool", ["get_notifications", "get_logs"])
async def test_an_unknown_server_is_an_error(tool: str) -> None:
    async with a_scene(github=ScriptedBackend()) as scene:
        assert (await scene.error(tool, server="gihub"))["code"] == "TOOL_ERR_SERVER_NOT_FOUND"


async def test_a_log_line_shows_its_source() -> None:
    async with a_scene(a=ScriptedBackend()) as scene:
        logged(scene, "a", "error", {"x": None})
        scene.backends["a"].link.listener.handle_output("oops", "stderr")
        common = {"server": "a", "timestamp": "2026-01-01T00:00:00.000Z"}
        assert await scene.value("get_logs") == {
            "logs": [
                {**common, "level": "error", "source": "protocol", "logger": "db", "data": {"x": None}},
                {**common, "level": "info", "source": "stderr", "data": "oops"},
            ],
            "dropped": 0,
        }


async def test_logs_are_filtered_by_level_and_source_and_other_lines_stay() -> None:
    async with a_scene(a=ScriptedBackend()) as scene:
        for level in ("debug", "warning", "error"):
            logged(scene, "a", level, level)
        listener = scene.backends["a"].link.listener
        listener.handle_output("err", "stderr")
        listener.handle_output("out", "stdout")
        assert await data_of(scene, level="warning") == ["warning", "error"]
        assert await data_of(scene, sources=["stdout"], clear=False) == ["out"]
        assert await data_of(scene, exclude_sources=["stdout", "stderr"]) == ["debug"]
        assert await data_of(scene) == ["err", "out"]
        assert await data_of(scene) == []


async def test_a_limit_returns_the_newest_lines_and_dropped_ones_are_counted_once() -> None:
    async with a_scene(a=ScriptedBackend(), limits=Limits(log_lines_per_server=3)) as scene:
        for number in range(5):
            logged(scene, "a", "info", number)
        got = await scene.value("get_logs", limit=2)
        assert ([line["data"] for line in got["logs"]], got["dropped"]) == ([3, 4], 2)
        rest = await scene.value("get_logs")
        assert ([line["data"] for line in rest["logs"]], rest["dropped"]) == ([2], 0)


@pytest.mark.parametrize("arguments", [{"level": "loud"}, {"limit": 0}, {"sources": ["smoke"]}])
async def test_an_invalid_filter_is_rejected(arguments: JsonObject) -> None:
    async with a_scene() as scene:
        assert (await scene.error("get_logs", **arguments))["code"] == "ERR_INVALID_ARGUMENTS"


async def test_a_log_level_is_set_on_one_server_or_on_all_servers_that_support_it() -> None:
    mute = ScriptedBackend()
    del mute.facts.capabilities["logging"]
    async with a_scene(a=ScriptedBackend(), b=ScriptedBackend(), mute=mute) as scene:
        assert await scene.value("set_log_level", server="a", level="debug") == {"servers": ["a"]}
        assert await scene.value("set_log_level", level="error") == {"servers": ["a", "b"]}
        asked = [params for method, params in scene.backends["a"].seen if method == "logging/setLevel"]
        assert asked == [{"level": "debug"}, {"level": "error"}]
        assert (await scene.error("set_log_level", server="mute", level="info"))["code"] == "ERR_UNSUPPORTED"


async def test_a_log_level_must_be_defined_by_the_protocol() -> None:
    async with a_scene(a=ScriptedBackend()) as scene:
        assert (await scene.error("set_log_level", level="loud"))["code"] == "ERR_INVALID_ARGUMENTS"
