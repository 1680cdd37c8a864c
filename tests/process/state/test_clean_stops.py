"""SIGTERM: a waiting caller learns the outcome of its call, and receives no task that dies with the process."""

import asyncio
import signal
from typing import Any

import pytest

from support.backends.counting_http import CountingBackend
from support.callers.http_process import HttpCaller
from support.callers.restartable_process import RestartableProcess
from support.waiting import eventually


def begin(caller: HttpCaller, tool: str, /, **arguments: Any) -> "asyncio.Task[dict[str, Any]]":
    return asyncio.create_task(caller.call(tool, **arguments))


async def is_draining(endpoint: RestartableProcess) -> bool:
    async with endpoint.http.get(endpoint.origin + "/readyz") as response:
        return response.status == 503


@pytest.mark.parametrize("era", ["handshake", "2026-07-28"])
async def test_a_call_whose_timeout_ends_during_shutdown_becomes_no_task_and_reports_its_outcome(
    endpoint: RestartableProcess, backend: CountingBackend, era: str
) -> None:
    """One call ends within the grace period and is answered. The other is abandoned, and its error reports that."""
    caller = await endpoint.caller() if era == "handshake" else endpoint.modern(emceepee_session="x")
    await caller.value("add_server", name="one", url=backend.url)
    held = {"server": "one", "tool": "hold", "timeout_ms": 1_000}
    calls = [begin(caller, "execute_tool", args={"id": call_id}, **held) for call_id in ("quick", "slow")]
    await backend.until(lambda: backend.ran.total() == 2)
    endpoint.process.send_signal(signal.SIGTERM)
    await eventually(lambda: is_draining(endpoint), what="it is stopping")
    await asyncio.wait(calls, timeout=1.2)  # longer than both may wait
    backend.let_go("quick")
    quick, slow = await asyncio.gather(*calls)
    assert quick["content"][0]["text"] == "quick"
    assert "proxy_task" not in slow["structuredContent"]
    assert "emceepee is stopping" in slow["structuredContent"]["error"]["message"]
    assert slow["structuredContent"]["error"]["details"]["mayHaveRun"] is True
    assert await endpoint.process.wait() == 0
    await endpoint.start()
    assert (await caller.value("list_tasks", include_completed=True))["tasks"] == []
    assert backend.ran == {"quick": 1, "slow": 1}


@pytest.mark.parametrize("era", ["handshake", "2026-07-28"])
async def test_await_activity_during_shutdown_reports_that_nothing_happened(
    endpoint: RestartableProcess, era: str
) -> None:
    caller = await endpoint.caller() if era == "handshake" else endpoint.modern(emceepee_session="x")
    await caller.value("set_timer", duration_ms=3_600_000, message="much later")
    async with caller.stream("await_activity", timeout_ms=60_000) as stream:
        endpoint.process.send_signal(signal.SIGTERM)
        last = (await stream.rest())[-1].message
    assert last is not None
    report = last["result"]["structuredContent"]
    assert (report["triggers"], report["events"]) == ([{"type": "timeout"}], [])
    assert await endpoint.process.wait() == 0
    await endpoint.start()
    assert len((await caller.value("list_timers"))["timers"]) == 1


async def test_a_caller_that_waits_during_shutdown_learns_which_tasks_fail(
    endpoint: RestartableProcess, backend: CountingBackend
) -> None:
    caller = await endpoint.caller()
    await caller.value("add_server", name="one", url=backend.url)
    held = {"server": "one", "tool": "hold", "args": {"id": "held"}, "timeout_ms": 0}
    task = (await caller.value("execute_tool", **held))["proxy_task"]["task_id"]
    async with (
        caller.stream("await_activity", timeout_ms=60_000) as waiting,
        caller.stream("get_task_result", task_id=task) as result,
    ):
        endpoint.process.send_signal(signal.SIGTERM)
        heard, ended = [(await stream.rest())[-1].message for stream in (waiting, result)]
    assert heard is not None
    assert ended is not None
    (group,) = heard["result"]["structuredContent"]["events"]
    assert [(event["type"], event["data"]["taskId"]) for event in group["events"]] == [("task_failed", task)]
    assert "emceepee is stopping" in ended["result"]["structuredContent"]["error"]["message"]
    assert await endpoint.process.wait() == 0
    await endpoint.start()
    assert "emceepee is stopping" in (await caller.error("get_task_result", task_id=task))["message"]
