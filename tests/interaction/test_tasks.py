"""Slow calls become tasks."""

from support.scene import a_scene
from support.scripted_backend import ScriptedBackend


async def test_a_call_that_outlives_its_patience_becomes_a_task_and_is_never_sent_twice() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        backend = scene.backends["one"]
        call = scene.start("execute_tool", server="one", tool="slow", args={"n": 1}, timeout_ms=10_000)
        asked = await backend.next_asked()
        await scene.clock.advance(10)
        task_id = (await call)["structuredContent"]["proxy_task"]["task_id"]
        asked.reply(content=[{"type": "text", "text": "done"}], odd=None)
        result = await scene.call("get_task_result", task_id=task_id)
        assert (result["content"][0], result["odd"]) == ({"type": "text", "text": "done"}, None)
        assert [method for method, _ in backend.seen].count("tools/call") == 1
