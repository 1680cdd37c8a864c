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
import pytest_asyncio

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

pytestmark = pytest.mark.asyncio(loop_scope="module")
Json = dict[str, Any]
RESULT_MS = 30_000
EVERYTHING, FASTMCP = "server-everything", "FastMCP"


@dataclass
class Work:
    """A server's work, and the visible course of its task."""

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
def everything() -> Iterator[Work]:
    with everything_on_a_port("streamableHttp") as port:
        yield Work(EVERYTHING, port, Path(os.devnull).parent)


@pytest.fixture(scope="module")
def fastmcp_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Work]:
    folder = tmp_path_factory.mktemp("dig")
    with fastmcp_with_tasks(folder) as port:
        yield Work(FASTMCP, port, folder)


@pytest.fixture
def fastmcp(fastmcp_server: Work) -> Iterator[Work]:
    yield fastmcp_server
    for left in fastmcp_server.folder.iterdir():
        left.unlink()


@pytest.fixture(params=[EVERYTHING, FASTMCP])
def work(request: pytest.FixtureRequest) -> Work:
    found: Work = request.getfixturevalue("everything" if request.param == EVERYTHING else "fastmcp")
    return found


class Scene:
    """A caller, emceepee, a line that can fail, and the server behind it."""

    def __init__(self, work: Work, proxy: FaultProxy, endpoint: RestartableProcess, caller: HttpCaller) -> None:
        self.work, self.proxy, self.endpoint, self.caller = work, proxy, endpoint, caller
        self.events: list[Json] = []

    async def ask(self, tool: str, /, **arguments: Any) -> Json:
        """Return the whole reply, and store its notices."""
        reply = await self.caller.call(tool, **arguments)
        self.events += told_events(reply)
        return reply

    async def begin(self, *, asks: bool = False) -> str:
        return task_id(await self.call(asks=asks, timeout_ms=300))

    async def call(self, *, asks: bool = False, timeout_ms: int = RESULT_MS) -> Json:
        return await self.ask(
            "execute_tool", server=self.work.server, timeout_ms=timeout_ms, **self.work.call(asks=asks)
        )

    async def question(self) -> str:
        found: list[str] = []

        async def is_asked() -> bool:
            listed = (await self.ask("get_elicitations", server=self.work.server))["structuredContent"]["requests"]
            found[:] = [str(item["requestId"]) for item in listed]
            return bool(found)

        await eventually(is_asked, what="the server asks")
        return found[0]

    async def is_status(self, wanted: str) -> bool:
        servers = (await self.ask("list_servers"))["structuredContent"]["servers"]
        return any(each["status"] == wanted for each in servers if each["name"] == self.work.server)

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


@asynccontextmanager
async def playing(work: Work, endpoint: RestartableProcess) -> AsyncIterator[Scene]:
    """In a session of its own."""
    async with fault_proxy(work.port) as proxy:
        caller = await endpoint.caller()
        await caller.value("add_server", name=work.server, url=f"http://127.0.0.1:{proxy.port}/mcp")
        yield Scene(work, proxy, endpoint, caller)
        await caller.value("remove_server", name=work.server)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def same_emceepee(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[RestartableProcess]:
    """For all tests that do not end it."""
    async with restartable_process(tmp_path_factory.mktemp("state")) as endpoint:
        yield endpoint


@pytest_asyncio.fixture(loop_scope="module")
async def scene(work: Work, same_emceepee: RestartableProcess) -> AsyncIterator[Scene]:
    async with playing(work, same_emceepee) as made:
        yield made


@dataclass
class Both:
    """An emceepee that the test ends and starts again, with both servers behind it."""

    endpoint: RestartableProcess
    scenes: list[Scene]


@pytest_asyncio.fixture(loop_scope="module")
async def both(everything: Work, fastmcp: Work, tmp_path: Path) -> AsyncIterator[Both]:
    async with (
        restartable_process(tmp_path) as endpoint,
        playing(everything, endpoint) as one,
        playing(fastmcp, endpoint) as other,
    ):
        yield Both(endpoint, [one, other])


async def test_a_backend_task_looks_like_a_plain_call_to_a_caller_that_waits_long_enough(scene: Scene) -> None:
    scene.work.let_end()
    reply = await scene.call()
    assert reply["content"][0]["text"].startswith(scene.work.expected(asks=False))
    assert "proxy_task" not in (reply.get("structuredContent") or {})


async def test_a_backend_task_that_asks_a_question_completes(scene: Scene) -> None:
    task = await scene.begin(asks=True)
    await scene.answer(await scene.question())
    await scene.expect_result(task, asks=True)


async def test_a_backend_task_whose_connection_is_cut_completes(scene: Scene) -> None:
    task = await scene.begin()
    scene.proxy.reset()
    await scene.expect_result(task)


async def test_a_backend_task_completes_after_its_server_was_unreachable(scene: Scene) -> None:
    task = await scene.begin()
    async with scene.unreachable():
        pass
    await scene.expect_result(task)


async def test_a_question_of_a_backend_task_is_answered_after_the_connection_was_lost(scene: Scene) -> None:
    task = await scene.begin(asks=True)
    question = await scene.question()
    async with scene.unreachable():
        assert await scene.question() == question
    await scene.answer(question)
    await scene.expect_result(task, asks=True)


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_the_result_of_a_backend_task_is_delivered_once_after_emceepee_restarts(both: Both, how: str) -> None:
    tasks = [await scene.begin() for scene in both.scenes]
    await both.endpoint.restart(how)
    for scene, task in zip(both.scenes, tasks, strict=True):
        await scene.expect_result(task)
    await both.endpoint.restart("stop")  # a kill might come before it is stored that the reply was read
    for scene, task in zip(both.scenes, tasks, strict=True):
        scene.events.clear()
        await scene.ask("list_timers")
        assert [event["type"] for event in scene.events if event["data"].get("taskId") == task] == []


async def test_a_call_that_waits_during_a_kill_is_reported_as_a_task_that_completes(both: Both) -> None:
    calls = [asyncio.create_task(scene.call()) for scene in both.scenes]
    await asyncio.wait(calls, timeout=1)  # it is in the store by then
    await both.endpoint.restart("kill")
    await asyncio.wait(calls)
    assert all(call.exception() is not None for call in calls)
    for scene in both.scenes:
        tasks = (await scene.ask("list_tasks"))["structuredContent"]["tasks"]
        assert [task["status"] for task in tasks] == ["working"]
        await scene.expect_result(tasks[0]["taskId"])


async def test_a_question_that_was_open_during_a_kill_is_asked_again_and_answered(both: Both) -> None:
    tasks = [await scene.begin(asks=True) for scene in both.scenes]
    before = [await scene.question() for scene in both.scenes]
    await both.endpoint.restart("kill")
    for scene, task, old in zip(both.scenes, tasks, before, strict=True):
        question = await scene.question()
        assert question != old
        await scene.answer(question)
        await scene.expect_result(task, asks=True)


async def test_canceling_the_local_task_cancels_the_task_at_the_server(scene: Scene) -> None:
    task = await scene.begin()
    reply = await scene.ask("cancel_task", task_id=task)
    assert reply["structuredContent"]["success"] is True


async def test_a_backend_task_continues_after_a_restart_of_a_server_that_stores_it(
    same_emceepee: RestartableProcess, tmp_path: Path
) -> None:
    """FastMCP reruns the tasks in its Redis."""
    with redis_server() as redis:
        reply = await result_after_restart(same_emceepee, tmp_path, f"redis://127.0.0.1:{redis.port}/1")
    assert reply["content"][0]["text"] == "dug hole"


async def test_a_backend_task_fails_after_a_restart_of_a_server_that_forgets_it(
    same_emceepee: RestartableProcess, tmp_path: Path
) -> None:
    reply = await result_after_restart(same_emceepee, tmp_path, None)
    assert reply["structuredContent"]["error"]["details"]["reason"] == "task_forgotten"


async def result_after_restart(endpoint: RestartableProcess, folder: Path, redis: str | None) -> Json:
    """That of a task whose server was killed in the middle and started again at the same address."""
    port = free_port()
    work = Work(FASTMCP, port, folder)
    async with AsyncExitStack() as stack:
        with fastmcp_with_tasks(folder, port=port, redis=redis):
            scene = await stack.enter_async_context(playing(work, endpoint))
            task = await scene.begin()
        with fastmcp_with_tasks(folder, port=port, redis=redis):
            work.let_end()
            return await scene.ask("get_task_result", task_id=task, timeout_ms=RESULT_MS)


async def test_a_quick_backend_task_costs_little_more_than_a_poll(
    fastmcp: Work, same_emceepee: RestartableProcess
) -> None:
    async with playing(fastmcp, same_emceepee) as scene:
        loop = asyncio.get_running_loop()
        took = []
        for _ in range(10):
            began = loop.time()
            reply = await scene.ask("execute_tool", server=fastmcp.server, tool="quick", args={"name": "x"})
            took.append(loop.time() - began)
            assert reply["content"][0]["text"] == "quick x"
        record_figure(f"a FastMCP task that does nothing: {sorted(took)[5] * 1000:.0f} ms")
