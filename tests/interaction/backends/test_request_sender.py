"""A server that cannot ask in 2026-07-28 reconnects in the handshake era: the next call works, and others continue."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from emceepee.backends.era_memory import cannot_ask
from emceepee.backends.link import RpcError
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Asked, ScriptedBackend
from support.fakes.clock import settle
from support.sessions.recorded_events import RecordedEvents
from support.sessions.scene import Scene, a_scene, scripted_spec

FASTMCP = "elicitation via server-initiated requests is unavailable on 2026-07-28 connections."
PYTHON = "Cannot send 'elicitation/create': this transport context has no back-channel for server-initiated requests."
TYPESCRIPT = (
    "Server-to-client requests are not available on protocol revision 2026-07-28: 'elicitation/create' cannot be sent "
    "while serving a request on that revision. Return inputRequired({ ... }) from the handler instead"
)
DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}


def failing(words: str) -> Callable[[Asked], None]:
    return lambda asked: asked.reply(isError=True, content=[{"type": "text", "text": words}])


def refusing(words: str) -> Callable[[Asked], None]:
    return lambda asked: asked.refuse(-32600, words)


async def failed(scene: Scene, backend: ScriptedBackend, answer: Callable[[Asked], None]) -> JsonObject:
    """The reply to a call that the server answers so."""
    call = scene.start("execute_tool", server="one", tool="echo")
    answer(await backend.next_asked())
    return await call


@pytest.mark.parametrize(
    ("answer", "said"),
    [(failing(FASTMCP), "result"), (refusing(PYTHON), "error"), (failing(f"Error: {TYPESCRIPT}"), "result")],
)
async def test_the_error_for_a_server_that_cannot_ask_in_2026_07_28_announces_that_the_next_try_works_and_it_does(
    answer: Callable[[Asked], None], said: str
) -> None:
    backend = ScriptedBackend(modern=True)
    async with a_scene(one=backend) as scene:
        error = (await failed(scene, backend, answer))["structuredContent"]["error"]
        assert error["code"] == "TOOL_ERR_EXECUTION_FAILED"
        assert "call again. Any effects of the interrupted call remain" in error["message"]
        assert said in error["details"]
        call = scene.start("execute_tool", server="one", tool="echo")
        (await backend.next_asked()).reply(**DONE)
        assert (await call)["content"][0]["text"] == "done"
        assert [link.facts.is_modern for link in backend.links] == [True, False]
        assert scene.status("one") == "connected"


async def test_the_switch_to_the_handshake_era_is_reported_as_a_reconnection_without_losses() -> None:
    backend = ScriptedBackend(modern=True, is_process=True)
    async with a_scene(one=backend) as scene:
        story = RecordedEvents(scene)
        await failed(scene, backend, refusing(PYTHON))
        await settle()
        told = story.events()
        assert [kind for kind, _ in told] == [
            "server_disconnected",
            "process_stopped",
            "restarted",
            "server_reconnected",
        ]
        assert told[0][1]["reason"] == "it reconnects with another protocol version"
        assert told[-1][1]["invalidated"] == {"tasks": 0, "pendingRequests": 0}


async def test_concurrent_calls_finish_before_the_link_is_replaced() -> None:
    backend = ScriptedBackend(modern=True)
    async with a_scene(one=backend) as scene:
        neighbor = scene.start("execute_tool", server="one", tool="slow", timeout_ms=100_000)
        slow = await backend.next_asked()
        assert (await failed(scene, backend, refusing(PYTHON)))["isError"]
        again = scene.start("execute_tool", server="one", tool="echo")
        await settle()
        assert (len(backend.links), backend.asked) == (1, [])
        slow.reply(**DONE)
        assert (await neighbor)["content"][0]["text"] == "done"
        (await backend.next_asked()).reply(**DONE)
        assert (await again)["content"][0]["text"] == "done"
        assert len(backend.links) == 2


async def test_a_concurrent_call_that_never_ends_does_not_delay_the_new_link_forever() -> None:
    backend = ScriptedBackend(modern=True)
    async with a_scene(one=backend) as scene:
        neighbor = scene.start("execute_tool", server="one", tool="slow", timeout_ms=900_000)
        slow = await backend.next_asked()
        assert (await failed(scene, backend, refusing(PYTHON)))["isError"]
        again = scene.start("execute_tool", server="one", tool="echo", timeout_ms=100_000)
        await scene.clock.advance(scene.session.limits.connect_seconds)
        (await backend.next_asked()).reply(**DONE)
        assert (await again)["content"][0]["text"] == "done"
        assert (len(backend.links), neighbor.done()) == (1, False)
        slow.reply(**DONE)
        await neighbor
        await settle()
        assert len(backend.links) == 2


async def test_a_link_that_is_lost_before_its_replacement_leaves_no_waiting_caller() -> None:
    backend = ScriptedBackend(modern=True)
    async with a_scene(one=backend) as scene:
        neighbor = scene.start("execute_tool", server="one", tool="slow", timeout_ms=900_000)
        await backend.next_asked()
        assert (await failed(scene, backend, refusing(PYTHON)))["isError"]
        again = scene.start("execute_tool", server="one", tool="echo")
        await settle()
        backend.link.break_off("the line went dead")
        (await backend.next_asked()).reply(**DONE)
        assert (await again)["content"][0]["text"] == "done"
        assert (await neighbor)["isError"]


async def test_a_forced_mode_returns_the_answer_of_the_server_unchanged() -> None:
    backend = ScriptedBackend(modern=True)
    spec = replace(scripted_spec("one"), mode="2026-07-28")
    async with a_scene(specs=[spec], one=backend) as scene:
        reply = await failed(scene, backend, failing(FASTMCP))
        assert (reply["isError"], reply["content"][0]["text"]) == (True, FASTMCP)
        assert len(backend.links) == 1


async def test_in_the_handshake_era_the_error_wording_has_no_special_meaning() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        reply = await failed(scene, backend, failing(FASTMCP))
        assert reply["content"][0]["text"] == FASTMCP
        assert len(backend.links) == 1


async def test_a_round_of_a_call_is_not_resent_in_the_other_era_where_the_call_would_run_again() -> None:
    backend = ScriptedBackend(modern=True)
    async with a_scene(one=backend) as scene:
        call = scene.start("execute_tool", server="one", tool="echo")
        (await backend.next_asked()).reply(resultType="input_required", requestState="s")
        await settle()
        backend.facts = replace(backend.facts, is_modern=False)
        backend.link.break_off("the line went dead")
        await scene.clock.advance(5)
        async with asyncio.timeout(5):
            error = (await call)["structuredContent"]["error"]
        assert error["details"]["mayHaveRun"] is True
        assert [method for method, _ in backend.seen].count("tools/call") == 1


# A server that needs both eras.

NO_TASKS = {"code": -32021, "message": "the tool requires the tasks extension"}
TASKS: JsonObject = {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}


def modern_and_not(backend: ScriptedBackend) -> list[bool]:
    return [link.facts.is_modern for link in backend.links]


async def done(scene: Scene, backend: ScriptedBackend, tool: str = "echo") -> None:
    call = scene.start("execute_tool", server="one", tool=tool)
    (await backend.next_asked()).reply(**DONE)
    assert (await call)["content"][0]["text"] == "done"


async def test_a_call_that_requires_2026_07_28_is_sent_over_a_second_link_of_that_era() -> None:
    """The call did not run: the server refused it because of an undeclared capability."""
    backend = ScriptedBackend(modern=True)
    async with a_scene(one=backend) as scene:
        await failed(scene, backend, failing(FASTMCP))
        await done(scene, backend)
        assert modern_and_not(backend) == [True, False]
        call = scene.start("execute_tool", server="one", tool="dig")
        (await backend.next_asked()).fail(RpcError(NO_TASKS))
        (await backend.next_asked()).reply(**DONE)
        assert (await call)["content"][0]["text"] == "done"
        assert modern_and_not(backend) == [True, False, True]


async def test_a_server_with_tasks_stays_in_2026_07_28_and_only_the_asking_tool_uses_the_second_link() -> None:
    backend = ScriptedBackend(modern=True, capabilities=TASKS)
    async with a_scene(one=backend) as scene:
        error = (await failed(scene, backend, failing(FASTMCP)))["structuredContent"]["error"]
        assert "makes this call in an earlier one from now on" in error["message"]
        await done(scene, backend, "other")
        assert modern_and_not(backend) == [True]
        for _ in range(2):
            await done(scene, backend)
        await done(scene, backend, "other")
        assert modern_and_not(backend) == [True, False]
        assert scene.status("one") == "connected"


async def test_a_question_over_the_second_link_reaches_the_caller() -> None:
    backend = ScriptedBackend(modern=True, capabilities=TASKS)
    async with a_scene(one=backend) as scene:
        await failed(scene, backend, failing(FASTMCP))
        call = scene.start("execute_tool", server="one", tool="echo")
        asked = await backend.next_asked()
        side = backend.links[-1]
        side.listener.handle_notification("notifications/tools/list_changed", {}, None)
        waiting = asyncio.ensure_future(
            side.listener.handle_request("elicitation/create", {"message": "?"}, asked.origin)
        )
        await call
        [question] = (await scene.value("get_elicitations"))["requests"]
        await scene.value("respond_to_elicitation", request_id=question["requestId"], action="decline")
        assert await waiting == {"action": "decline"}
        asked.reply(**DONE)
        await settle()
        assert (await scene.value("get_notifications"))["notifications"] == []


async def test_a_lost_second_link_fails_its_call_and_leaves_the_first_link_open() -> None:
    backend = ScriptedBackend(modern=True, capabilities=TASKS)
    async with a_scene(one=backend) as scene:
        await failed(scene, backend, failing(FASTMCP))
        call = scene.start("execute_tool", server="one", tool="echo")
        await backend.next_asked()
        backend.links[-1].break_off("the line went dead")
        error = (await call)["structuredContent"]["error"]
        assert error["details"]["mayHaveRun"] is True
        assert not backend.links[0].closed.done()
        await done(scene, backend)
        assert modern_and_not(backend) == [True, False, False]


async def test_closing_a_server_closes_both_of_its_links() -> None:
    backend = ScriptedBackend(modern=True, capabilities=TASKS)
    async with a_scene(one=backend) as scene:
        await failed(scene, backend, failing(FASTMCP))
        await done(scene, backend)
        await scene.value("remove_server", name="one")
        assert [link.closed.done() for link in backend.links] == [True, True]


@pytest.mark.parametrize("capabilities", [{"tools": {}}, TASKS])
@pytest.mark.parametrize("how", ["reconnect", "remove"])
async def test_reconnecting_or_removing_a_server_renegotiates_its_era(how: str, capabilities: JsonObject) -> None:
    backend = ScriptedBackend(modern=True, capabilities=capabilities)
    async with a_scene(one=backend) as scene:
        await failed(scene, backend, failing(FASTMCP))
        await done(scene, backend)
        if how == "reconnect":
            await scene.value("reconnect_server", name="one")
        else:
            await scene.value("remove_server", name="one")
            await scene.value("add_server", name="one", url="http://one.test/mcp")
        assert backend.link.facts.is_modern
        await done(scene, backend)
        assert backend.links[-1].facts.is_modern


async def test_an_error_that_another_mode_would_prevent_names_that_mode() -> None:
    spec = replace(scripted_spec("one"), mode="legacy")
    backend = ScriptedBackend(modern=True)
    async with a_scene(specs=[spec], one=backend) as scene:
        call = scene.start("execute_tool", server="one", tool="dig")
        (await backend.next_asked()).fail(RpcError(NO_TASKS))
        assert 'Its mode is "legacy"' in (await call)["structuredContent"]["error"]["message"]
    backend = ScriptedBackend(modern=True)
    async with a_scene(one=backend) as scene:
        error = (await failed(scene, backend, failing(FASTMCP)))["structuredContent"]["error"]
        assert 'set its mode to "legacy"' in error["message"]


def test_only_known_error_wordings_identify_a_server_that_cannot_ask() -> None:
    assert all(map(cannot_ask, (FASTMCP, PYTHON, TYPESCRIPT)))
    assert not cannot_ask("elicitation is unavailable")
    assert not cannot_ask(str(RpcError({"code": -32601, "message": "Method not found"})))
