"""Scripts of a real `emceepee serve` with SQLite state that is killed, stopped, or replaced by another."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.backends.counting_http import CountingBackend
from support.callers.http_process import HttpCaller
from support.callers.replicas import restartable_replicas
from support.callers.restartable_process import restartable_process
from support.figures import record_figure
from support.server_programs.real_servers import fastmcp_with_tasks
from support.sessions.asking import task_id
from support.system.processes import sandbox_workers_of
from support.waiting import eventually

Json = dict[str, Any]
CAREFUL = """
kept = {"before": await mcp.call_tool("one", "echo", {"id": "first"})}
try:
    kept["held"] = await mcp.call_tool("one", "hold", {"id": "second"})
except RuntimeError as error:
    kept["held"] = str(error)
await mcp.sleep(0.01)
kept["after"] = await mcp.call_tool("one", "echo", {"id": "third"})
kept
"""


@pytest.fixture
async def backend() -> AsyncIterator[CountingBackend]:
    backend = CountingBackend()
    await backend.start()
    yield backend
    await backend.stop()


async def result_of(caller: HttpCaller, task: str) -> Json:
    """Return the script's outcome, after as many calls as needed."""
    async with asyncio.timeout(60):
        while True:
            value = await caller.value("codemode_execute", task_id=task, timeout=10)
            if "success" in value:
                return value


def has_loaded_sandbox(pid: int) -> bool:
    return "_monty" in Path(f"/proc/{pid}/maps").read_text()


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_a_parked_script_survives_a_kill_and_finishes_without_repeated_calls(
    backend: CountingBackend, tmp_path: Path, how: str
) -> None:
    async with restartable_process(tmp_path) as endpoint:
        caller = await endpoint.caller()
        await caller.value("add_server", name="one", url=backend.url)
        promotion = await caller.call("codemode_execute", code=CAREFUL, timeout=1.5)
        assert backend.ran == {"first": 1, "second": 1}
        await eventually(lambda: sandbox_workers_of(endpoint.process.pid) == [], what="it is parked")
        await endpoint.restart(how)
        value = await result_of(caller, task_id(promotion))
    assert value["success"], value
    assert (value["result"]["before"], value["result"]["after"]) == ("done", "done")
    assert "not known whether it ran" in value["result"]["held"]
    assert backend.ran == {"first": 1, "second": 1, "third": 1}


CATCHING = """
try:
    kept["asked"] = await mcp.call_tool("one", "ask", {"id": "asked"})
except RuntimeError as error:
    kept["asked"] = str(error)
kept
"""
AT_ONCE = {
    "that asks": f"kept = {{}}{CATCHING}",
    "of short waits": f"kept = {{}}\nfor _ in range(200): await mcp.sleep(0.02)\n{CATCHING}",
    "that computes": f"import time\nkept, began = {{}}, time.time()\nwhile time.time() < began + 2: pass\n{CATCHING}",
    "that computes after a call": "kept = {'before': await mcp.call_tool('one', 'echo', {'id': 'first'})}\n"
    f"import time\nbegan = time.time()\nwhile time.time() < began + 2: pass\n{CATCHING}",
}


@pytest.mark.parametrize("what", AT_ONCE)
async def test_a_script_survives_a_kill_once_a_reply_has_named_its_task(
    backend: CountingBackend, tmp_path: Path, what: str
) -> None:
    async with restartable_process(tmp_path) as endpoint:
        caller = await endpoint.caller()
        await caller.value("add_server", name="one", url=backend.url)
        await caller.value("codemode_execute", code="await mcp.call_tool('one', 'echo', {'id': 'connected'})")
        promotion = await caller.call("codemode_execute", code=AT_ONCE[what], timeout=1)
        task = task_id(promotion)
        await endpoint.kill()
        has_asked = backend.ran["asked"]
        await endpoint.start()
        async with asyncio.timeout(60):
            while (value := await caller.value("codemode_execute", task_id=task, timeout=1)).get("success") is None:
                for question in (await caller.value("get_elicitations"))["requests"]:
                    await caller.value(
                        "respond_to_elicitation", request_id=question["requestId"], action="accept", content={}
                    )
    assert value["success"], value
    assert backend.ran == Counter(connected=1, asked=1) + Counter(first=int("before" in value["result"]))
    assert ("not known whether it ran" in value["result"]["asked"]) is bool(has_asked)


async def test_sandbox_workers_end_with_a_killed_emceepee(backend: CountingBackend, tmp_path: Path) -> None:
    settings = {"EMCEEPEE_CONFIG": '{"limits": {"script_compute_seconds": 2}}'}
    async with restartable_process(tmp_path, env=settings) as endpoint:
        caller = await endpoint.caller()
        looping = asyncio.create_task(caller.call("codemode_execute", code="while True: pass"))
        await eventually(lambda: bool(sandbox_workers_of(endpoint.process.pid)), what="a worker runs")
        await endpoint.kill()  # waits until its children have ended
        with pytest.raises(Exception):  # noqa: B017, PT011 - the client may raise any error for a broken connection
            await looping
        await endpoint.start()


@pytest.fixture(scope="module")
def digger(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    folder = tmp_path_factory.mktemp("dig")
    with fastmcp_with_tasks(folder) as port:
        yield port, folder


async def test_a_script_at_a_question_survives_a_kill_and_continues_with_the_answer(
    digger: tuple[int, Path], tmp_path: Path
) -> None:
    """The server runs its tool as a task of its own, so the question also survives emceepee."""
    port, folder = digger
    code = 'place = await mcp.call_tool("digger", "ask_and_dig", {"name": "pit"})\n{"says": place, "kept": 40 + 2}'
    async with restartable_process(tmp_path) as endpoint:
        caller = await endpoint.caller()
        await caller.value("add_server", name="digger", url=f"http://127.0.0.1:{port}/mcp")
        promotion = await caller.call("codemode_execute", code=code, timeout=20)
        task = task_id(promotion)
        assert "Where shall I dig?" in promotion["content"][0]["text"]
        await eventually(lambda: sandbox_workers_of(endpoint.process.pid) == [], what="it is parked")
        await endpoint.restart("kill")
        found: list[str] = []

        async def is_asked() -> bool:
            listed = (await caller.value("get_elicitations"))["requests"]
            found[:] = [item["requestId"] for item in listed]
            return bool(found)

        await eventually(is_asked, what="the question is asked again")
        await caller.value("respond_to_elicitation", request_id=found[0], action="accept", content={"place": "here"})
        (folder / "pit.go").touch()
        value = await result_of(caller, task)
    assert value["result"]["kept"] == 42
    assert "dug pit at here" in str(value["result"]["says"])


async def test_another_replica_takes_over_a_parked_script(backend: CountingBackend, tmp_path: Path) -> None:
    state = ("--state", f"sqlite:{tmp_path / 'state.db'}")
    async with restartable_replicas(tmp_path, 2, *state, env={}) as (one, other):
        caller = one.modern(emceepee_session="desk", authorization="Bearer token-of-the-replicas")
        await caller.value("add_server", name="one", url=backend.url)
        code = 'await mcp.sleep(3)\nawait mcp.call_tool("one", "echo", {"id": "late"})'
        promotion = await caller.call("codemode_execute", code=code, timeout=1.5)
        began = asyncio.get_running_loop().time()
        await one.kill()
        taker = other.modern(emceepee_session="desk", authorization="Bearer token-of-the-replicas")
        value = await result_of(taker, task_id(promotion))
        took = asyncio.get_running_loop().time() - began
    assert value["success"], value
    assert backend.ran == {"late": 1}
    record_figure(f"a parked script whose replica was killed ended {took:.1f} s later at another")


# What there is before the first script, and where there is none.


async def test_the_sandbox_is_loaded_only_for_the_first_script(tmp_path: Path) -> None:
    async with restartable_process(tmp_path) as endpoint:
        caller = await endpoint.caller()
        await caller.value("list_servers")
        assert not has_loaded_sandbox(endpoint.process.pid)
        assert (await caller.value("codemode_execute", code="1 + 1"))["result"] == 2
        assert has_loaded_sandbox(endpoint.process.pid)
        await eventually(lambda: sandbox_workers_of(endpoint.process.pid) == [], what="its worker has ended")


@pytest.mark.parametrize("by", ["flag", "variable"])
async def test_code_mode_can_be_disabled(tmp_path: Path, by: str) -> None:
    arguments = ("--no-codemode",) if by == "flag" else ()
    env = {} if by == "flag" else {"EMCEEPEE_NO_CODEMODE": "1"}
    async with restartable_process(tmp_path, *arguments, env=env) as endpoint:
        caller = await endpoint.caller()
        listed = (await caller.request("tools/list"))["result"]["tools"]
        assert [tool["name"] for tool in listed if tool["name"].startswith("codemode")] == []
        answer = await caller.request("tools/call", {"name": "codemode_execute", "arguments": {"code": "1"}})
        assert "code mode is switched off" in answer["error"]["message"]
        caller.headers["emceepee-surface"] = "lite"
        async with caller.post("tools/list") as response:
            assert (response.status, "disabled here; request the surface full" in await response.text()) == (400, True)


async def test_a_missing_sandbox_is_reported_clearly(tmp_path: Path) -> None:
    without = tmp_path / "pydantic_monty.py"
    without.write_text("raise ImportError('no build for this platform')")
    async with restartable_process(tmp_path / "state", env={"PYTHONPATH": str(tmp_path)}) as endpoint:
        caller = await endpoint.caller()
        error = await caller.error("codemode_execute", code="1")
        assert (error["code"], "pydantic-monty is missing" in error["message"]) == ("ERR_UNSUPPORTED", True)
