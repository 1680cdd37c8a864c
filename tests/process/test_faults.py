"""After every fault: each event once, no hanging call, no running task, and no process left."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from support.backends.counting_http import SPELLINGS, CountingBackend, Era
from support.callers.http_process import http_process
from support.callers.recorder import Recorder, hostile, recorded
from support.faults.fault_proxy import FaultProxy, fault_proxy
from support.figures import record_figure
from support.system.processes import below, is_alive, memory_of, servers_of, state_of, until

ERAS: list[Era] = ["legacy", "2026-07-28"]
CRASH = ["process_crashed", "server_disconnected", "restarting", "restarted", "server_reconnected"]


@asynccontextmanager
async def a_backend(era: Era = "legacy", *, spelling: str = "404", get: int = 200) -> AsyncIterator[CountingBackend]:
    backend = CountingBackend(era, spelling=spelling, get=get)
    await backend.start()
    try:
        yield backend
    finally:
        await backend.stop()


@asynccontextmanager
async def through_a_proxy(
    era: Era, *, get: int = 200, **limits: float
) -> AsyncIterator[tuple[CountingBackend, FaultProxy, Recorder]]:
    async with (
        a_backend(era, get=get) as backend,
        fault_proxy(backend.port) as proxy,
        recorded({"name": "one", "url": f"http://127.0.0.1:{proxy.port}/mcp"}, **limits) as emceepee,
    ):
        await emceepee.text("echo")
        yield backend, proxy, emceepee


async def crashed_once(emceepee: Recorder, before: int) -> None:
    """One crash reads as the contract says, and everything works again."""
    await emceepee.until("server_reconnected")
    story = [kind for kind in emceepee.types[before:] if not kind.startswith("task")]
    assert story == CRASH
    assert await emceepee.text("echo", text="again") == "again"
    await emceepee.settled()


# Children.


async def test_a_child_killed_while_idle_is_restarted() -> None:
    async with recorded(hostile()) as emceepee:
        pid = int(await emceepee.text("pid"))
        before = len(emceepee.events)
        os.kill(pid, signal.SIGKILL)
        assert (await emceepee.until("process_crashed"))["signal"] == "SIGKILL"
        await crashed_once(emceepee, before)
        assert int(await emceepee.text("pid")) != pid
        assert not is_alive(pid)


async def test_a_child_killed_during_calls_fails_them_all_at_once_and_is_restarted() -> None:
    async with recorded(hostile()) as emceepee:
        pid = int(await emceepee.text("pid"))
        promoted = await emceepee.execute("hang", timeout_ms=0)
        task_id = promoted["structuredContent"]["proxy_task"]["task_id"]
        waiting = asyncio.ensure_future(emceepee.execute("hang"))
        await asyncio.sleep(0)  # it is sent before the next one
        await emceepee.text("echo")
        before = len(emceepee.events)
        os.kill(pid, signal.SIGKILL)
        error = (await waiting)["structuredContent"]["error"]
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert "SIGKILL" in error["message"]
        await crashed_once(emceepee, before)
        assert (await emceepee.until("task_failed"))["taskId"] == task_id
        assert (await emceepee.until("server_reconnected"))["invalidated"] == {"tasks": 1, "pendingRequests": 0}
        failed = await emceepee.call("get_task_result", task_id=task_id)
        assert failed["structuredContent"]["error"]["code"] == "TOOL_ERR_SERVER_DISCONNECTED"


async def test_a_child_that_dies_after_a_question_leaves_no_question_open() -> None:
    async with recorded(hostile()) as emceepee:
        pid = int(await emceepee.text("pid"))
        await emceepee.execute("ask")
        await emceepee.until("elicitation_request")
        os.kill(pid, signal.SIGKILL)
        assert (await emceepee.until("elicitation_expired"))["reason"] == "disconnected"
        await emceepee.until("server_reconnected")
        await emceepee.settled()
        assert emceepee.types.count("elicitation_expired") == 1


async def test_a_question_of_a_server_reconnected_on_request_is_disconnected_and_not_withdrawn() -> None:
    async with recorded(hostile()) as emceepee:
        await emceepee.execute("ask")
        await emceepee.until("elicitation_request")
        await emceepee.value("reconnect_server", name="one")
        assert (await emceepee.until("elicitation_expired"))["reason"] == "disconnected"
        assert (await emceepee.until("server_reconnected"))["invalidated"] == {"tasks": 1, "pendingRequests": 1}
        assert emceepee.types.count("server_disconnected") == 1
        assert "process_crashed" not in emceepee.types
        await emceepee.settled()


@pytest.mark.parametrize("tool", ["die", "half"])
async def test_a_child_that_crashes_during_its_call_fails_that_call_without_a_second_run(
    tool: str, tmp_path: Path
) -> None:
    log = tmp_path / "calls"
    async with recorded(hostile("one", "--log", str(log))) as emceepee:
        await emceepee.text("echo")
        before = len(emceepee.events)
        error = (await emceepee.execute(tool))["structuredContent"]["error"]
        assert error["details"]["mayHaveRun"] is True
        await crashed_once(emceepee, before)
        assert [line.split()[0] for line in log.read_text().splitlines()] == ["echo", tool, "echo"]


async def test_two_megabytes_of_stderr_block_nothing() -> None:
    async with recorded(hostile()) as emceepee:
        assert await emceepee.text("stderr", bytes=2_000_000) == "done"
        assert await emceepee.text("echo", text="still here") == "still here"
        logs = await emceepee.value("get_logs", sources=["stderr"], limit=1000)
        assert (len(logs["logs"]), logs["dropped"]) == (500, 19_500)
        assert "process_crashed" not in emceepee.types


async def test_invalid_data_on_stdout_is_logged_without_further_effects() -> None:
    async with recorded(hostile()) as emceepee:
        pid = await emceepee.text("pid")
        assert await emceepee.text("garbage") == "done"
        logs = (await emceepee.value("get_logs", sources=["stdout"]))["logs"]
        assert [line["data"][:10] for line in logs] == [
            "hello",
            "\ufffd\ufffd\ufffd",
            '{"half":',
            "42",
            "null",
            "[]",
            "x" * 10,
        ]
        assert await emceepee.text("pid") == pid
        assert "process_crashed" not in emceepee.types


async def test_an_answer_after_the_cancellation_of_its_call_has_no_effect() -> None:
    async with recorded(hostile()) as emceepee:
        promoted = await emceepee.execute("late", timeout_ms=0)
        task_id = promoted["structuredContent"]["proxy_task"]["task_id"]
        assert (await emceepee.value("cancel_task", task_id=task_id))["success"] is True
        await emceepee.until("task_cancelled")
        assert await emceepee.text("echo", text="next") == "next"
        task = (await emceepee.value("get_task", task_id=task_id))["task"]
        assert (task["status"], task["hasResult"]) == ("cancelled", False)
        assert "task_completed" not in emceepee.types


async def test_a_child_that_crashes_at_start_is_tried_five_times_and_can_be_reconnected_later() -> None:
    async with recorded(hostile("one", "--crash-at-start")) as emceepee:
        told = await emceepee.until("restart_failed")
        assert told["attempts"] == 5
        assert "no key for the lock" in told["error"]
        assert emceepee.types == [*["restarting"] * 5, "restart_failed"]
        error = (await emceepee.execute("echo"))["structuredContent"]["error"]
        assert "no key for the lock" in error["message"]
        assert (await emceepee.call("reconnect_server", name="one"))["isError"] is True


async def test_a_server_that_crashes_at_start_is_not_added_and_the_error_gives_the_reason() -> None:
    async with recorded() as emceepee:
        error = (await emceepee.call("add_server", **hostile("one", "--crash-at-start")))["structuredContent"]["error"]
        assert "no key for the lock" in error["message"]
        assert (await emceepee.value("list_servers"))["servers"] == []
        assert len(below(emceepee.pid)) == 1  # the guardian


async def test_a_crash_loop_ends_after_five_restarts() -> None:
    async with recorded(hostile("one", "--crash-after-start")) as emceepee:
        assert (await emceepee.until("restart_failed"))["attempts"] == 5
        assert emceepee.types.count("process_crashed") == 6
        assert emceepee.types.count("restarted") == 5
        servers = (await emceepee.value("list_servers"))["servers"]
        assert servers[0]["status"] == "error"
        assert len(below(emceepee.pid)) == 1


@pytest.mark.parametrize(
    "flags", [("--ignore-end",), ("--fork",), ("--fork-away",), ("--fork-away", "--ignore-end")], ids=" ".join
)
async def test_a_removed_server_leaves_no_process(flags: tuple[str, ...]) -> None:
    async with recorded(hostile("one", *flags)) as emceepee:
        pid = int(await emceepee.text("pid"))
        family = servers_of(emceepee.pid)
        assert pid in family
        assert len(family) == 1 + any("fork" in flag for flag in flags)
        await emceepee.value("remove_server", name="one")
        assert [pid for pid in family if is_alive(pid)] == []
        await until(lambda: len(below(emceepee.pid)) == 1, what="the collection of what ended")


async def test_forked_processes_of_a_crashed_child_are_gone_after_its_restart() -> None:
    async with recorded(hostile()) as emceepee:
        pid = int(await emceepee.text("pid"))
        forked = [int(await emceepee.text("fork", away=away, stubborn=True)) for away in (False, True)]
        os.kill(pid, signal.SIGKILL)
        await emceepee.until("server_reconnected")
        await until(lambda: not any(map(is_alive, forked)), what="the end of the grandchildren")


async def test_a_child_that_stopped_reading_and_died_releases_its_waiting_writers() -> None:
    """Its forked process still holds the pipe and does not read."""
    async with recorded(hostile()) as emceepee:
        pid = int(await emceepee.text("pid"))
        await emceepee.text("fork", away=True, stubborn=True)
        deaf = asyncio.ensure_future(emceepee.execute("deaf"))
        waiting = [asyncio.ensure_future(emceepee.execute("echo", text="x" * 1_000_000)) for _ in range(3)]
        await until(lambda: state_of(pid) == "S", what="a child that sleeps")
        os.kill(pid, signal.SIGKILL)
        assert (await deaf)["structuredContent"]["error"]["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        for result in await asyncio.gather(*waiting):
            if result.get("isError"):
                assert result["structuredContent"]["error"]["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
            else:  # not a byte of it had been written, so it was sent to the next process
                assert result["content"][0]["text"] == "x" * 1_000_000
        assert await emceepee.text("echo", text="again") == "again"


async def test_an_unused_child_is_stopped_and_starts_again_on_use() -> None:
    async with recorded(hostile("one", "--fork-away"), idle_stop_seconds=0.2) as emceepee:
        pid = int(await emceepee.text("pid"))
        family = servers_of(emceepee.pid)
        await emceepee.until("process_stopped")
        assert [pid for pid in family if is_alive(pid)] == []
        assert (await emceepee.value("list_servers"))["servers"][0]["status"] == "not_connected"
        assert int(await emceepee.text("pid")) != pid
        assert "process_crashed" not in emceepee.types


# The network.


@pytest.mark.parametrize("era", ERAS)
async def test_a_network_black_hole_blocks_no_caller_and_ends_without_effects(era: Era) -> None:
    async with through_a_proxy(era, connect_seconds=1, request_seconds=1) as (_, proxy, emceepee):
        proxy.is_black_hole = True
        promoted = await emceepee.execute("echo", timeout_ms=50)
        task_id = promoted["structuredContent"]["proxy_task"]["task_id"]
        refused = await emceepee.call("subscribe_resource", server="one", uri="note://a")
        assert refused["structuredContent"]["error"]["code"] == "TOOL_ERR_TIMEOUT"
        async with asyncio.timeout(8):  # a second to say goodbye, and one to try
            error = await emceepee.call("reconnect_server", name="one")
        assert error["structuredContent"]["error"]["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert (await emceepee.until("task_failed"))["taskId"] == task_id
        proxy.heal()
        proxy.reset()
        await emceepee.until("server_reconnected")
        assert await emceepee.text("echo", text="back") == "back"
        await emceepee.settled()


@pytest.mark.parametrize("era", ERAS)
async def test_a_connection_reset_fails_only_the_calls_in_flight(era: Era) -> None:
    async with through_a_proxy(era) as (backend, proxy, emceepee):
        waiting = asyncio.ensure_future(emceepee.execute("hang", id="h"))
        await backend.until_seen("tools/call", 2)
        proxy.reset()
        error = (await waiting)["structuredContent"]["error"]
        assert (error["code"], error["details"]["mayHaveRun"]) == ("TOOL_ERR_SERVER_DISCONNECTED", True)
        assert await emceepee.text("echo", text="back") == "back"
        assert backend.ran["h"] == 1
        await emceepee.settled()


async def test_a_question_closes_with_its_call() -> None:
    async with through_a_proxy("legacy", get=405) as (_, proxy, emceepee):
        await emceepee.execute("ask", id="asked")
        await emceepee.until("elicitation_request")
        proxy.reset()
        await emceepee.until("task_failed")
        assert (await emceepee.until("elicitation_expired"))["reason"] == "withdrawn"
        await emceepee.settled()
        assert await emceepee.text("echo", text="back") == "back"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("size", [1, 200])
async def test_a_truncated_response_is_a_clear_error_without_a_second_run(era: Era, size: int) -> None:
    async with through_a_proxy(era, get=405) as (backend, proxy, emceepee):
        proxy.cut_answers_after(size)
        error = (await emceepee.execute("echo", id="cut", text="x" * 1000))["structuredContent"]["error"]
        assert (error["code"], error["details"]["mayHaveRun"]) == ("TOOL_ERR_SERVER_DISCONNECTED", True)
        proxy.heal()
        assert await emceepee.text("echo", text="back") == "back"
        assert backend.ran["cut"] == 1


@pytest.mark.parametrize("era", ERAS)
async def test_a_server_that_refuses_connections_for_a_while_is_reconnected(era: Era) -> None:
    async with through_a_proxy(era) as (_, proxy, emceepee):
        await proxy.refuse()
        error = (await emceepee.execute("echo", id="never"))["structuredContent"]["error"]
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        await emceepee.until("server_disconnected")
        await proxy.listen()
        await emceepee.until("server_reconnected")
        assert await emceepee.text("echo", text="back") == "back"
        assert emceepee.types.count("server_disconnected") == emceepee.types.count("server_reconnected") == 1


# A server that was restarted between any two steps.

STEPS = ["connect", "list", "call", "subscribe", "question", "task", "log level"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("step", STEPS)
async def test_a_server_restarted_at_any_step_accepts_the_next_call(era: Era, step: str) -> None:
    async with a_backend(era) as backend, recorded({"name": "one", "url": backend.url}) as emceepee:
        await emceepee.until("server_connected")
        match step:
            case "list":
                await emceepee.value("list_tools")
            case "call":
                await emceepee.text("echo")
            case "subscribe":
                await emceepee.value("subscribe_resource", server="one", uri="note://a")
            case "question":
                await emceepee.execute("ask", id="asked")
                await emceepee.until("elicitation_request")
            case "task":
                await emceepee.execute("hang", id="task", timeout_ms=0)
                await backend.until_seen("tools/call")
            case "log level":
                await emceepee.value("set_log_level", server="one", level="error")
        await backend.restart()
        if step == "question" and era == "2026-07-28":  # its state lies in the call, which can go on
            request = (await emceepee.value("get_elicitations"))["requests"][0]["requestId"]
            await emceepee.value("respond_to_elicitation", request_id=request, action="accept", content={"sure": True})
            await emceepee.until("task_completed")
        elif step in ("question", "task"):
            await emceepee.until("task_failed")
        assert await emceepee.text("echo", text="back", id="after") == "back"
        assert len((await emceepee.value("list_tools", server="one"))["tools"]) == 3
        await emceepee.value("subscribe_resource", server="one", uri="note://b")
        assert set(backend.subscribed) == ({"note://a", "note://b"} if step == "subscribe" else {"note://b"})
        await emceepee.settled()
        assert max(backend.ran.values()) == 1
        for kind in ("server_disconnected", "server_reconnected"):
            assert emceepee.types.count(kind) <= 1


async def test_a_server_that_was_down_at_the_start_of_emceepee_is_connected_once_it_runs() -> None:
    async with a_backend() as backend:
        await backend.stop()
        async with recorded({"name": "one", "url": backend.url}) as emceepee:
            await emceepee.until("server_reconnecting", 3)
            await backend.start()
            await emceepee.until("server_connected")
            assert await emceepee.text("echo", text="here") == "here"


@pytest.mark.parametrize(("spelling", "get"), [*zip(SPELLINGS, (200, 405, 404, 405, 200, 200, 405, 200), strict=True)])
async def test_a_lost_session_with_any_wording_is_reopened_and_the_caller_does_not_notice(
    spelling: str, get: int
) -> None:
    async with (
        a_backend(spelling=spelling, get=get) as backend,
        recorded({"name": "one", "url": backend.url}) as emceepee,
    ):
        await emceepee.text("echo")
        backend.forget_sessions()
        assert await emceepee.text("echo", text="back", id="after") == "back"
        backend.forget_sessions()
        await emceepee.value("subscribe_resource", server="one", uri="note://a")
        backend.forget_sessions()
        assert len((await emceepee.value("list_tools"))["tools"]) == 3
        assert (backend.ran["after"], backend.subscribed[-1]) == (1, "note://a")
        assert emceepee.types.count("server_reconnected") == 3


@pytest.mark.parametrize("get", [404, 501])
async def test_a_server_without_a_push_stream_is_not_reported_as_lost(get: int) -> None:
    async with a_backend(get=get) as backend, recorded({"name": "one", "url": backend.url}) as emceepee:
        for number in range(20):
            assert await emceepee.text("echo", text=str(number)) == str(number)
        assert "server_disconnected" not in emceepee.types
        assert backend.seen["initialize"] == 1


# The header.


async def test_the_caller_id_header_is_stable_per_server_differs_between_servers_and_can_be_disabled() -> None:
    async with a_backend() as one, a_backend("2026-07-28") as two, a_backend() as off:
        servers: list[dict[str, Any]] = [
            {"name": "one", "url": one.url},
            {"name": "two", "url": two.url},
            {"name": "off", "url": off.url, "sessionHeader": False},
        ]
        async with http_process(env={"EMCEEPEE_CONFIG": json.dumps({"servers": servers})}) as endpoint:
            caller = await endpoint.caller()
            for name in ("one", "two", "off"):
                await caller.call("execute_tool", server=name, tool="echo", args={})
            await one.restart()
            await caller.call("execute_tool", server="one", tool="echo", args={})
            first = {headers.get("emceepee-session-id") for headers in one.headers}
            assert len(first) == 1
            other = await endpoint.caller()
            await other.call("execute_tool", server="one", tool="echo", args={})
            ids = {headers.get("emceepee-session-id") for headers in [*one.headers, *two.headers]}
            assert None not in ids
            assert len(ids) == 4  # of each session at each server
            assert {headers.get("emceepee-session-id") for headers in off.headers} == {None}


async def test_a_session_on_pipes_without_a_name_sends_servers_no_caller_id() -> None:
    async with a_backend() as server, recorded({"name": "one", "url": server.url}) as emceepee:
        await emceepee.text("echo", "one")
        assert {headers.get("emceepee-session-id") for headers in server.headers} == {None}


# Again and again.


async def test_a_hundred_rounds_of_faults_leave_memory_constant() -> None:
    async with (
        a_backend(get=405) as backend,
        recorded(
            hostile("one", restartConfig={"baseDelayMs": 1, "maxDelayMs": 1, "maxAttempts": 1000}),
            {"name": "two", "url": backend.url},
            events_per_session=100,  # few enough to be full after the warm-up, as everything else that is kept
            task_retention_seconds=1,
        ) as emceepee,
    ):

        async def one_round() -> None:
            await emceepee.execute("die")
            await emceepee.text("garbage")
            await emceepee.text("stderr", bytes=50_000)
            backend.forget_sessions()
            await emceepee.text("echo", "two", text="x" * 10_000)
            task = (await emceepee.execute("late", timeout_ms=0))["structuredContent"]["proxy_task"]["task_id"]
            await emceepee.value("cancel_task", task_id=task)

        for _ in range(40):
            await one_round()
        before = memory_of(emceepee.pid)
        for _ in range(100):
            await one_round()
        after = memory_of(emceepee.pid)
        record_figure(f"{before >> 10} kB before, {after >> 10} kB after")
        assert after <= before * 1.05, f"{before >> 10} kB before, {after >> 10} kB after"
        await until(lambda: len(below(emceepee.pid)) == 3, what="the collection of what ended")
