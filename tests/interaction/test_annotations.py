"""Tools' declared effects are true: read-only ones leave a session unchanged, idempotent ones can be repeated."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from emceepee.sessions.views import question_view, task_view, timer_view
from emceepee.tools.catalogue import TOOLS
from emceepee.tools.declaration.hints import ToolEffect
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Answer, ScriptedBackend
from support.fakes.clock import settle
from support.sessions.asking import a_task, elicit, sample
from support.sessions.scene import Scene, a_scene

ANSWERS: dict[str, JsonObject] = {
    "resources/read": {"contents": [{"uri": "a:b", "text": "text"}]},
    "prompts/get": {"messages": []},
    "completion/complete": {"completion": {"values": ["x"]}},
    "resources/subscribe": {},
    "resources/unsubscribe": {},
}
ARGUMENTS: dict[str, JsonObject] = {
    "codemode_search": {"query": "echo"},
    "get_server_status": {"server": "one"},
    "read_resource": {"server": "one", "uri": "a:b"},
    "get_prompt": {"server": "one", "name": "p"},
    "complete": {"server": "one", "ref": "p", "argument": "a", "value": ""},
}


def always(answer: JsonObject) -> Answer:
    return lambda _: answer


class Busy:
    """A session in which there is something of everything."""

    def __init__(self, scene: Scene, finished: str, timer: str, result: str) -> None:
        self.scene, self._finished, self._timer, self._result = scene, finished, timer, result

    def arguments(self, tool: str) -> JsonObject:
        by_id = {"task_id": self._finished, "timer_id": self._timer, "handle": self._result}
        [model] = [known.params for known in TOOLS if known.name == tool]
        return ARGUMENTS.get(tool, {}) | {key: value for key, value in by_id.items() if key in model.model_fields}

    async def add_server(self, name: str) -> JsonObject:
        """One that a caller adds; what it was added with."""
        self.scene.backends[name] = ScriptedBackend()
        given: JsonObject = {"name": name, "url": f"http://{name}.test/mcp"}
        await self.scene.value("add_server", **given)
        return given

    def state(self) -> dict[str, Any]:
        session = self.scene.session
        return {
            "servers": [
                (link.spec, str(link.state.status), link.settings.subscriptions, link.settings.log_level)
                for link in session.connections
            ],
            "tasks": [task_view(task) for task in session.tasks.all()],
            "timers": [timer_view(timer) for timer in session.timers.all(include_inactive=True)],
            "questions": [question_view(question) for question in session.questions.open()],
            "notifications": list(session.buffers("one").notifications),
            "logs": list(session.buffers("one").logs),
            "results": len(session.results),
        }


@asynccontextmanager
async def a_busy_session() -> AsyncIterator[Busy]:
    backend = ScriptedBackend()
    backend.answers |= {method: always(answer) for method, answer in ANSWERS.items()}
    async with a_scene(one=backend) as scene:
        finished, asked = await a_task(scene)
        asked.reply(content=[])
        await a_task(scene)
        timer = await scene.value("set_timer", duration_ms=60_000, message="later")
        elicit(backend)
        sample(backend)
        await scene.value("subscribe_resource", server="one", uri="a:b")
        await scene.value("set_log_level", server="one", level="debug")
        backend.link.listener.handle_notification("notifications/tools/list_changed", {}, None)
        scene.session.buffers("one").add_log_message({"level": "info", "data": "hello"}, scene.clock.now())
        await settle()
        kept = await scene.session.results.keep(b"text", is_json=False)
        yield Busy(scene, finished, timer["timerId"], kept.handle)


def effect_of(tool: str) -> ToolEffect:
    return next(known.effect for known in TOOLS if known.name == tool)


@pytest.mark.parametrize("tool", [tool.name for tool in TOOLS if tool.effect.read_only])
async def test_a_read_only_tool_leaves_the_session_unchanged(tool: str) -> None:
    async with a_busy_session() as busy:
        before = busy.state()
        assert all(before.values())
        result = await busy.scene.call(tool, **busy.arguments(tool))
        assert not result.get("isError"), result
        await settle()
        assert busy.state() == before


@pytest.mark.parametrize(("tool", "kept"), [("get_notifications", "notifications"), ("get_logs", "logs")])
async def test_a_tool_that_clears_its_results_has_no_other_side_effect(tool: str, kept: str) -> None:
    """Reading deletes the results, so the tool is not read-only despite its name."""
    async with a_busy_session() as busy:
        before = busy.state()
        assert len((await busy.scene.value(tool))[kept]) == 1
        assert busy.state() == before | {kept: []}


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("add_server", {"name": "two", "url": "http://two.test/mcp"}),
        ("add_server", {"name": "three", "url": "http://three.test/mcp", "timeout_ms": 2000, "replace": True}),
        ("subscribe_resource", {"server": "one", "uri": "c:d"}),
        ("unsubscribe_resource", {"server": "one", "uri": "a:b"}),
        ("set_log_level", {"server": "one", "level": "error"}),
    ],
)
async def test_an_idempotent_tool_changes_nothing_when_it_is_called_again(tool: str, arguments: JsonObject) -> None:
    assert effect_of(tool).idempotent
    two = ScriptedBackend()
    async with a_busy_session() as busy:
        await busy.add_server("three")
        busy.scene.backends["two"] = two
        before = busy.state()
        await busy.scene.value(tool, **arguments)
        once = busy.state()
        assert once != before
        await busy.scene.value(tool, **arguments)
        assert busy.state() == once


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("add_server", {"name": "two", "url": "http://other.test/mcp", "replace": True}),
        ("remove_server", {"name": "two"}),
        ("reconnect_server", {"name": "one"}),
        ("delete_timer", {}),
        ("cancel_task", {}),
    ],
)
async def test_a_tool_that_can_end_or_overwrite_something_is_annotated_as_destructive(
    tool: str, arguments: JsonObject
) -> None:
    """This applies if any of its arguments does so, listed or not."""
    assert effect_of(tool).destructive
    async with a_busy_session() as busy:
        await busy.add_server("two")
        (working,) = busy.scene.session.tasks.working("one")
        by_id = {"cancel_task": {"task_id": working.task_id}, "delete_timer": busy.arguments("delete_timer")}
        before = busy.state()
        await busy.scene.value(tool, **by_id.get(tool, arguments))
        await settle()
        after = busy.state()
        del before["results"], before["questions"]  # a number; what waits for an answer may be withdrawn at any time
        assert [entry for kind, entries in before.items() for entry in entries if entry not in after[kind]]


def test_the_idempotency_tests_cover_every_idempotent_tool() -> None:
    named = {"add_server", "subscribe_resource", "unsubscribe_resource", "set_log_level"}
    assert {tool.name for tool in TOOLS if tool.effect.idempotent} == named
