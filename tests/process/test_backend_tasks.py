"""Tools that real servers run as tasks of their own, called through `execute_tool` of a real emceepee over HTTP.

server-everything speaks 2025-11-25 and requires a task for `simulate-research-query`, which takes four seconds.
FastMCP 4 speaks 2026-07-28, and its tools end when the test says so.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.callers.http_process import HttpCaller
from support.callers.restartable_process import RestartableProcess, restartable_process
from support.faults.fault_proxy import FaultProxy, fault_proxy
from support.figures import record_figure
from support.server_programs.real_servers import everything_on_a_port, fastmcp_with_tasks
from support.sessions.asking import task_id
from support.sessions.replies import told_events
from support.system.ports import free_port
from support.system.redis_server import redis_server
from support.waiting import eventually

Json = dict[str, Any]
RESULT_MS = 30_000
EVERYTHING, FASTMCP = "server-everything", "FastMCP"


@dataclass
class Work:
    """What a server is to do, and how its task is seen to have gone."""

    server: str
    port: int
    folder: Path

    def call(self, *, asks: bool) -> Json:
        if self.server == EVERYTHING:
            return {"tool": "simulate-research-query", "args": {"topic": "python", "ambiguous": asks}}
        return {"tool": "ask_and_dig" if asks else "dig", "args": {"name": "hole"}}

    @property
    def answer(self) -> Json:
        return {"interpretation": "snake"} if self.server == EVERYTHING else {"place": "here"}

    def expected(self, *, asks: bool) -> str:
        if self.server == EVERYTHING:
            return "# Research Report: python (snake)" if asks else "# Research Report: python\n"
        return "dug hole at here" if asks else "dug hole"

    def let_end(self) -> None:
        (self.folder / "hole.go").touch()

    @property
    def runs(self) -> int:
        ran = self.folder / "hole.ran"
        return len(ran.read_text().splitlines()) if ran.exists() else 1


@pytest.fixture(scope="module")
def everything() -> Iterator[int]:
    with everything_on_a_port("streamableHttp") as port:
        yield port


@pytest.fixture(scope="module")
def fastmcp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, Path]]:
    folder = tmp_path_factory.mktemp("dig")
    with fastmcp_with_tasks(folder) as port:
        yield port, folder


@pytest.fixture(params=[EVERYTHING, FASTMCP])
def work(request: pytest.FixtureRequest) -> Iterator[Work]:
    if request.param == EVERYTHING:
        yield Work(EVERYTHING, request.getfixturevalue("everything"), Path(os.devnull).parent)
        return
    port, folder = request.getfixturevalue("fastmcp")
    yield Work(FASTMCP, port, folder)
    for left in folder.iterdir():
        left.unlink()


class Scene:
    """A caller, emceepee, a line that can fail, and the server behind it."""

    def __init__(self, work: Work, proxy: FaultProxy, endpoint: RestartableProcess, caller: HttpCaller) -> None:
        self.work, self.proxy, self.endpoint, self.caller = work, proxy, endpoint, caller
        self.events: list[Json] = []

    async def ask(self, tool: str, /, **arguments: Any) -> Json:
        """The whole reply; what it tells besides is kept."""
        reply = await self.caller.call(tool, **arguments)
        self.events += told_events(reply)
        return reply

    async def begin(self, *, asks: bool = False) -> str:
        reply = await self.ask("execute_tool", server="one", timeout_ms=300, **self.work.call(asks=asks))
        return task_id(reply)

    async def question(self) -> str:
        found: list[str] = []

        async def is_asked() -> bool:
            listed = (await self.ask("get_elicitations"))["structuredContent"]["requests"]
            found[:] = [str(item["requestId"]) for item in listed]
            return bool(found)

        await eventually(is_asked, what="the server asks")
        return found[0]

    async def is_status(self, wanted: str) -> bool:
        servers = (await self.ask("list_servers"))["structuredContent"]["servers"]
        return bool(servers[0]["status"] == wanted)

    @asynccontextmanager
    async def unreachable(self) -> AsyncIterator[None]:
        """Within, the server cannot be reached, and emceepee knows that."""
        await self.proxy.refuse()
        await eventually(lambda: self.is_status("reconnecting"), what="the server counts as lost")
        yield
        await self.proxy.listen()

    async def answer(self, question: str) -> None:
        reply = await self.ask("respond_to_elicitation", request_id=question, action="accept", content=self.work.answer)
        assert not reply.get("isError"), reply

    async def expect_result(self, task: str, *, asks: bool = False) -> None:
        """It is the task's, and told once."""
        self.work.let_end()
        reply = await self.ask("get_task_result", task_id=task, timeout_ms=RESULT_MS)
        assert not reply.get("isError"), reply
        assert reply["content"][0]["text"].startswith(self.work.expected(asks=asks))
        assert self.work.runs == 1 or asks
        await self.ask("list_timers")
        ends = [event["type"] for event in self.events if event["data"].get("taskId") == task]
        assert ends.count("task_failed") == 0
        assert ends.count("task_completed") <= 1, "a reply that brings the result need not tell that it is there"


@pytest.fixture
async def scene(work: Work, tmp_path: Path) -> AsyncIterator[Scene]:
    async with playing(work, tmp_path) as made:
        yield made


@asynccontextmanager
async def playing(work: Work, state: Path) -> AsyncIterator[Scene]:
    async with fault_proxy(work.port) as proxy, restartable_process(state) as endpoint:
        caller = await endpoint.caller()
        await caller.value("add_server", name="one", url=f"http://127.0.0.1:{proxy.port}/mcp")
        yield Scene(work, proxy, endpoint, caller)


async def test_a_task_is_answered_as_a_call_to_whoever_waits_long_enough(scene: Scene) -> None:
    scene.work.let_end()
    reply = await scene.ask("execute_tool", server="one", timeout_ms=RESULT_MS, **scene.work.call(asks=False))
    assert reply["content"][0]["text"].startswith(scene.work.expected(asks=False))
    assert "proxy_task" not in (reply.get("structuredContent") or {})


async def test_a_task_that_asks_in_the_middle_is_completed(scene: Scene) -> None:
    task = await scene.begin(asks=True)
    await scene.answer(await scene.question())
    await scene.expect_result(task, asks=True)


async def test_a_task_whose_connection_is_cut_in_the_middle_is_completed(scene: Scene) -> None:
    task = await scene.begin()
    scene.proxy.reset()
    await scene.expect_result(task)


async def test_a_task_whose_server_cannot_be_reached_for_a_while_is_completed(scene: Scene) -> None:
    task = await scene.begin()
    async with scene.unreachable():
        pass
    await scene.expect_result(task)


async def test_a_question_is_answered_after_the_connection_was_lost(scene: Scene) -> None:
    task = await scene.begin(asks=True)
    question = await scene.question()
    async with scene.unreachable():
        assert await scene.question() == question
    await scene.answer(question)
    await scene.expect_result(task, asks=True)


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_the_result_is_delivered_once_when_emceepee_ends_in_the_middle(scene: Scene, how: str) -> None:
    task = await scene.begin()
    await scene.endpoint.restart(how)
    await scene.expect_result(task)
    await scene.endpoint.restart("stop")  # a kill might come before it is stored that the reply was read
    scene.events.clear()
    await scene.ask("list_timers")
    assert [event["type"] for event in scene.events if event["data"].get("taskId") == task] == []


async def test_a_call_that_waits_when_emceepee_is_killed_is_told_of_as_a_task_that_completes(scene: Scene) -> None:
    call = asyncio.create_task(
        scene.caller.call("execute_tool", server="one", timeout_ms=RESULT_MS, **scene.work.call(asks=False))
    )
    await asyncio.wait({call}, timeout=1)  # it is in the store by then
    await scene.endpoint.restart("kill")
    await asyncio.wait({call})
    assert call.exception() is not None
    tasks = (await scene.ask("list_tasks"))["structuredContent"]["tasks"]
    assert [task["status"] for task in tasks] == ["working"]
    await scene.expect_result(tasks[0]["taskId"])


async def test_a_question_that_was_open_when_emceepee_was_killed_is_asked_again_and_answered(scene: Scene) -> None:
    task = await scene.begin(asks=True)
    before = await scene.question()
    await scene.endpoint.restart("kill")
    question = await scene.question()
    assert question != before
    await scene.answer(question)
    await scene.expect_result(task, asks=True)


async def test_a_task_that_is_cancelled_ends_at_the_server(scene: Scene) -> None:
    task = await scene.begin()
    reply = await scene.ask("cancel_task", task_id=task)
    assert reply["structuredContent"]["success"] is True


async def test_a_task_goes_on_through_a_restart_of_a_server_that_still_knows_it(
    tmp_path: Path,
) -> None:
    """What it keeps in Redis, FastMCP runs again."""
    with redis_server() as redis:
        reply = await result_after_restart(tmp_path, f"redis://127.0.0.1:{redis.port}/1")
    assert reply["content"][0]["text"] == "dug hole"


async def test_a_task_is_failed_by_a_restart_of_a_server_that_forgets_it(tmp_path: Path) -> None:
    reply = await result_after_restart(tmp_path, None)
    assert reply["structuredContent"]["error"]["details"]["reason"] == "task_forgotten"


async def result_after_restart(folder: Path, redis: str | None) -> Json:
    """That of a task whose server was killed in the middle and started again at the same address."""
    port = free_port()
    work = Work(FASTMCP, port, folder)
    async with AsyncExitStack() as stack:
        with fastmcp_with_tasks(folder, port=port, redis=redis):
            scene = await stack.enter_async_context(playing(work, folder))
            task = await scene.begin()
        with fastmcp_with_tasks(folder, port=port, redis=redis):
            work.let_end()
            return await scene.ask("get_task_result", task_id=task, timeout_ms=RESULT_MS)


async def test_a_quick_task_costs_little_more_than_a_poll(fastmcp: tuple[int, Path], tmp_path: Path) -> None:
    port, folder = fastmcp
    async with playing(Work(FASTMCP, port, folder), tmp_path) as scene:
        loop = asyncio.get_running_loop()
        took = []
        for _ in range(10):
            began = loop.time()
            reply = await scene.ask("execute_tool", server="one", tool="quick", args={"name": "x"})
            took.append(loop.time() - began)
            assert reply["content"][0]["text"] == "quick x"
        record_figure(f"a FastMCP task that does nothing: {sorted(took)[5] * 1000:.0f} ms")
