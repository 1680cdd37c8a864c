import asyncio

import pytest

from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.scene import a_scene

PROMPT: JsonObject = {"name": "greet", "arguments": [{"name": "who", "required": True}], "zz": None}


def a_backend() -> ScriptedBackend:
    backend = ScriptedBackend()
    backend.answers["prompts/list"] = lambda _: {"prompts": [PROMPT]}
    backend.answers["prompts/get"] = lambda _: {"messages": [{"role": "user", "content": {"type": "x", "y": None}}]}
    backend.answers["completion/complete"] = lambda _: {
        "completion": {"values": ["a", "b"], "total": 7, "hasMore": True, "zz": 1}
    }
    return backend


async def test_prompts_are_listed_unchanged() -> None:
    async with a_scene(demo=a_backend()) as scene:
        assert await scene.value("list_prompts") == {"prompts": [{"server": "demo", **PROMPT}]}


async def test_a_prompt_is_returned_as_the_backend_rendered_it() -> None:
    backend = a_backend()
    async with a_scene(demo=backend) as scene:
        got = await scene.value("get_prompt", server="demo", name="greet", arguments={"who": "Ann"})
        assert got == {"messages": [{"role": "user", "content": {"type": "x", "y": None}}]}
        await scene.value("get_prompt", server="demo", name="greet")
    asked = [params for method, params in backend.seen if method == "prompts/get"]
    assert asked == [{"name": "greet", "arguments": {"who": "Ann"}}, {"name": "greet"}]


async def test_a_prompt_error_of_the_backend_is_passed_on() -> None:
    backend = a_backend()
    del backend.answers["prompts/get"]
    async with a_scene(demo=backend) as scene:
        getting = scene.start("get_prompt", server="demo", name="x")
        (await backend.next_asked("prompts/get")).refuse(-32602, "who is missing")
        async with asyncio.timeout(5):
            error = (await getting)["structuredContent"]["error"]
        assert "prompts/get with error -32602: who is missing" in error["message"]


async def test_prompt_arguments_must_be_strings() -> None:
    async with a_scene(demo=a_backend()) as scene:
        error = await scene.error("get_prompt", server="demo", name="x", arguments={"n": 1})
        assert error["details"]["problems"][0]["argument"] == "arguments.n"


@pytest.mark.parametrize(
    ("ref", "sent"),
    [
        ("greet", {"type": "ref/prompt", "name": "greet"}),
        ("file:///{path}", {"type": "ref/resource", "uri": "file:///{path}"}),
        ("demo://x", {"type": "ref/resource", "uri": "demo://x"}),
    ],
)
async def test_completions_are_requested_for_a_prompt_or_a_template(ref: str, sent: JsonObject) -> None:
    backend = a_backend()
    async with a_scene(demo=backend) as scene:
        completed = await scene.value(
            "complete", server="demo", ref=ref, argument="who", value="A", context={"lang": "en"}
        )
    assert completed == {"values": ["a", "b"], "total": 7, "hasMore": True}
    assert backend.seen[-1] == (
        "completion/complete",
        {"ref": sent, "argument": {"name": "who", "value": "A"}, "context": {"arguments": {"lang": "en"}}},
    )


@pytest.mark.parametrize("answer", [{}, {"completion": None}, {"completion": {}}])
async def test_an_empty_completion_has_no_values(answer: JsonObject) -> None:
    backend = a_backend()
    backend.answers["completion/complete"] = lambda _: answer
    async with a_scene(demo=backend) as scene:
        assert await scene.value("complete", server="demo", ref="x", argument="a", value="") == {"values": []}


async def test_a_backend_without_completion_support_returns_an_error() -> None:
    backend = a_backend()
    del backend.facts.capabilities["completions"]
    async with a_scene(demo=backend) as scene:
        error = await scene.error("complete", server="demo", ref="x", argument="a", value="")
        assert error["code"] == "ERR_UNSUPPORTED"
