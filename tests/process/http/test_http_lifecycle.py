"""Sessions over HTTP: creation, sharing, sleep, and cleanup."""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from support.backends.web_backend import WebBackend
from support.callers.http_process import HELLO, HttpCaller, HttpProcess, ModernCaller, http_process, until
from support.sessions.replies import said_in

pytestmark = pytest.mark.asyncio(loop_scope="module")
DEMO: dict[str, Any] = {
    "command": sys.executable,
    "args": ["-m", "emceepee.demo"],
    "env": {"PYTHONPATH": os.environ.get("PYTHONPATH", "")},
}


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


async def pid_of(caller: HttpCaller, server: str) -> int:
    return int((await caller.value("get_server_status", server=server))["process"]["pid"])


async def test_ending_a_session_is_answered_after_its_processes_ended(endpoint: HttpProcess) -> None:
    caller, other = await endpoint.caller(), await endpoint.caller()
    await caller.value("add_server", name="demo", **DEMO)
    await other.value("list_tools")
    pid, others_pid = await pid_of(caller, "demo"), await pid_of(other, "demo")
    assert await caller.end() == 200
    assert not is_alive(pid)
    assert is_alive(others_pid)
    async with caller.post("tools/list") as response:
        assert response.status == 404
        assert "initialize" in (await response.json())["error"]["message"]
    assert await caller.end() == 404
    await other.value("remove_server", name="demo")
    assert not is_alive(others_pid)


async def test_ending_a_session_answers_its_requests_and_ends_its_streams(
    endpoint: HttpProcess, caller: HttpCaller, backend: WebBackend
) -> None:
    own = await endpoint.caller()
    backend.steps_at_once = 1
    async with own.get() as pushes, own.stream("execute_tool", server="web", tool="wait") as stream:
        call = await backend.next_call()
        await stream.some(2)
        assert await own.end() == 200
        (last,) = await stream.rest()
        assert last.message is not None
        assert last.message["error"]["code"] == -32800
        assert await pushes.rest() == []
    async with asyncio.timeout(20):
        await asyncio.wait(
            [asyncio.create_task(call.was_cancelled.wait()), asyncio.create_task(call.was_dropped.wait())],
            return_when=asyncio.FIRST_COMPLETED,
        )
    assert await own.end() == 404


async def test_an_unknown_session_is_not_found_and_a_missing_session_id_is_requested(endpoint: HttpProcess) -> None:
    caller = await endpoint.caller()
    caller.headers["mcp-session-id"] = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
    async with caller.post("ping") as response:
        assert response.status == 404
    async with endpoint.http.get(endpoint.url, headers=caller.headers) as response:
        assert response.status == 404
    del caller.headers["mcp-session-id"]
    async with caller.post("ping") as response:
        assert response.status == 400
    assert await caller.end() == 400


async def test_initializing_again_in_an_active_session_is_answered(endpoint: HttpProcess) -> None:
    caller = await endpoint.caller()
    await caller.value("set_timer", duration_ms=60_000, message="still here")
    answer = await caller.request("initialize", HELLO)
    assert answer["result"]["serverInfo"]["name"] == "emceepee"
    assert len((await caller.value("list_timers"))["timers"]) == 1


@pytest.mark.parametrize("params", [None, {}, {"protocolVersion": 7}, {"capabilities": []}])
async def test_a_failed_initialize_leaves_no_session(endpoint: HttpProcess, params: Any) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", **({} if params is None else {"params": params})}
    async with endpoint.http.post(endpoint.url, json=message) as response:
        assert "error" in await response.json()
        assert "mcp-session-id" not in response.headers


async def test_the_first_requests_of_a_session_may_arrive_concurrently(
    endpoint: HttpProcess, caller: HttpCaller
) -> None:
    """A session is usable at once. A request for a server waits for that server only."""
    callers = await asyncio.gather(*(endpoint.caller() for _ in range(10)))
    echoes = await asyncio.gather(
        *(
            one.call("execute_tool", server="web", tool="echo", args={"n": number})
            for number, one in enumerate(callers)
            for _ in range(5)
        )
    )
    assert [echo["content"][0]["text"] for echo in echoes] == [f'{{"n": {n}}}' for n in range(10) for _ in range(5)]


async def test_two_concurrent_callers_in_one_session_get_each_event_once(endpoint: HttpProcess) -> None:
    first = await endpoint.caller()
    second = HttpCaller(endpoint, {})
    second.headers |= first.headers
    heard: list[str] = []

    def hear(result: dict[str, Any]) -> None:
        """Events come with any reply, and with that of await_activity."""
        for block in result["content"]:
            spoken = said_in(block["text"])
            groups = (
                spoken.get("events", [])
                if "triggers" in spoken
                else [{"events": spoken.get("events_since_last_response", [])}]
            )
            events = [event for group in groups for event in group["events"]]
            heard.extend(event["data"]["message"] for event in events if event["type"] == "timer_expired")

    for number in range(20):
        hear(await first.call("set_timer", duration_ms=20, message=str(number)))

    async def listen(caller: HttpCaller) -> None:
        while len(heard) < 20:
            hear(await caller.call("await_activity", timeout_ms=300))

    await asyncio.gather(listen(first), listen(second))
    assert sorted(heard, key=int) == [str(number) for number in range(20)]


async def test_batches_are_accepted_only_in_2025_03_26(endpoint: HttpProcess) -> None:
    old, newer = await endpoint.caller("2025-03-26"), await endpoint.caller()
    batch = [{"jsonrpc": "2.0", "id": key, "method": "ping"} for key in (1, "1")]
    async with endpoint.http.post(
        endpoint.url, json=[*batch, {"jsonrpc": "2.0", "method": "x"}], headers=old.headers
    ) as answer:
        assert sorted(await answer.json(), key=str) == sorted(
            ({"jsonrpc": "2.0", "id": key, "result": {}} for key in (1, "1")), key=str
        )
    for headers, body in ((newer.headers, batch), (old.headers, [])):
        async with endpoint.http.post(endpoint.url, json=body, headers=headers) as answer:
            assert answer.status == 400


# Explicit sessions.


async def test_a_session_handle_is_valid_until_it_is_closed(endpoint: HttpProcess) -> None:
    modern = endpoint.modern()
    opened = await modern.value("open_session", label="mine")
    handle = opened["session"]
    assert len(handle) >= 22
    assert opened == {"session": handle, "expiresAfterIdleMs": 86_400_000, "label": "mine"}
    await modern.value("set_timer", duration_ms=60_000, message="x", session=handle)
    assert len((await modern.value("list_timers", session=handle))["timers"]) == 1
    other = (await modern.value("open_session"))["session"]
    assert (await modern.value("list_timers", session=other))["timers"] == []
    assert await modern.value("close_session", session=handle) == {"closed": handle}
    for error in (
        await modern.error("list_timers", session=handle),
        await modern.error("close_session", session=handle),
        await modern.error("list_timers", session="made-up"),
    ):
        assert error["code"] == "TOOL_ERR_SESSION_NOT_FOUND"
        assert "open_session" in error["message"]
        assert handle not in error["message"]


async def test_closing_a_handle_is_answered_after_its_processes_ended(endpoint: HttpProcess) -> None:
    modern = endpoint.modern()
    handle = (await modern.value("open_session"))["session"]
    await modern.value("add_server", name="demo", session=handle, **DEMO)
    status = await modern.value("get_server_status", server="demo", session=handle)
    await modern.value("close_session", session=handle)
    assert not is_alive(status["process"]["pid"])
    cleaner = await endpoint.caller()
    await cleaner.value("remove_server", name="demo")


async def test_a_name_in_the_header_or_the_address_selects_a_session(endpoint: HttpProcess) -> None:
    named = endpoint.modern(emceepee_session="my desk")
    await named.value("set_timer", duration_ms=60_000, message="x")
    by_address = ModernCaller(HttpProcess(endpoint.process, endpoint.url + "?session=my%20desk", endpoint.http), {})
    assert len((await by_address.value("list_timers"))["timers"]) == 1
    assert (await endpoint.modern(emceepee_session="other").value("list_timers"))["timers"] == []
    assert (await endpoint.modern(emceepee_session="x" * 201).error("list_timers"))["code"] == "ERR_INVALID_ARGUMENTS"


async def test_the_session_argument_takes_precedence_over_the_header(endpoint: HttpProcess) -> None:
    named = endpoint.modern(emceepee_session="header")
    handle = (await named.value("open_session"))["session"]
    await named.value("set_timer", duration_ms=60_000, message="x", session=handle)
    assert (await named.value("list_timers"))["timers"] == []


async def test_the_session_argument_is_listed_for_callers_of_2026_07_28_only(endpoint: HttpProcess) -> None:
    handshake = (await (await endpoint.caller()).request("tools/list"))["result"]["tools"]
    modern = (await endpoint.modern().request("tools/list"))["result"]["tools"]
    assert [tool["name"] for tool in handshake] == [tool["name"] for tool in modern]
    without = {tool["name"] for tool in handshake if "session" in tool["inputSchema"].get("properties", {})}
    assert without == {"close_session"}
    shown = {tool["name"] for tool in modern if "session" in tool["inputSchema"].get("properties", {})}
    assert shown == {tool["name"] for tool in modern} - {"open_session"}


# Limits, time, the end.


async def test_a_session_over_the_limit_of_active_sessions_is_refused_with_the_reason() -> None:
    async with (
        http_process(env={"EMCEEPEE_CONFIG": '{"limits": {"sessions_per_principal": 2}}'}) as endpoint,
        (await endpoint.caller()).get(),
    ):
        first = await endpoint.caller()
        reading = await until_read(first)
        async with HttpCaller(endpoint, {}).post("initialize", HELLO) as response:
            assert response.status == 503
            assert response.headers["retry-after"] == "60"
            assert "reached the limit of sessions" in (await response.json())["error"]["message"]
        assert (await endpoint.modern().error("open_session"))["code"] == "ERR_LIMIT_EXCEEDED"
        assert (await endpoint.modern(emceepee_session="x").error("list_tasks"))["code"] == "ERR_LIMIT_EXCEEDED"
        listen = {"notifications": {"resourceSubscriptions": ["emceepee://events"]}}
        refused = await endpoint.modern(emceepee_session="x").request("subscriptions/listen", listen)
        assert refused["error"]["data"]["code"] == "ERR_LIMIT_EXCEEDED"
        reading.cancel()
        await first.end()
        await endpoint.caller()


async def until_read(caller: HttpCaller) -> "asyncio.Task[None]":
    """Someone reads the caller's stream until the task is cancelled."""
    is_open = asyncio.Event()

    async def read() -> None:
        async with caller.get() as stream:
            is_open.set()
            await stream.rest()

    task = asyncio.create_task(read())
    await asyncio.wait_for(is_open.wait(), 20)
    return task


async def test_shutdown_answers_a_long_call_with_the_reason_and_leaves_no_process() -> None:
    async with http_process() as endpoint:
        caller = await endpoint.caller()
        await caller.value("add_server", name="demo", **DEMO)
        pid = await pid_of(caller, "demo")
        digging: dict[str, Any] = {"server": "demo", "tool": "dig", "args": {"seconds": 120, "steps": 1000}}
        modern = endpoint.modern(emceepee_session="m")
        async with (
            caller.get() as pushes,
            caller.stream("execute_tool", **digging) as stream,
            modern.stream("execute_tool", **digging) as modern_stream,
        ):
            await stream.some(2)
            await modern_stream.some(1)
            endpoint.process.send_signal(signal.SIGTERM)
            assert await pushes.rest() == []
            for one in (stream, modern_stream):
                last = (await one.rest())[-1].message
                assert last is not None
                assert "emceepee is stopping" in last["result"]["structuredContent"]["error"]["message"]
        async with asyncio.timeout(20):
            assert await endpoint.process.wait() == 0
        await until(lambda: not is_alive(pid), "the backend's process ends")


async def test_a_second_interrupt_ends_serve_at_once() -> None:
    async with http_process() as endpoint:
        caller = await endpoint.caller()
        async with caller.post("tools/call", {"name": "await_activity", "arguments": {"timeout_ms": 60_000}}):
            endpoint.process.send_signal(signal.SIGINT)
            await until(lambda: _is_draining(endpoint), "it says that it is shutting down")
            endpoint.process.send_signal(signal.SIGINT)
            async with asyncio.timeout(20):
                assert await endpoint.process.wait() == 0


async def _is_draining(endpoint: HttpProcess) -> bool:
    try:
        async with endpoint.http.get(endpoint.origin + "/readyz") as response:
            return response.status == 503
    except OSError:
        return True


async def test_serve_reads_its_port_from_the_environment_and_works_under_its_alias() -> None:
    async with http_process(env={"PORT": "0"}) as endpoint:
        assert (await endpoint.caller()).headers["mcp-session-id"]
    alias = "import sys; from emceepee.cli.main import main_http; sys.exit(main_http())"
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", alias, "--port", "0", "--no-console", "--state", "memory"),
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    assert b"serves MCP at http://127.0.0.1:" in await asyncio.wait_for(process.stderr.readline(), 30)
    process.terminate()
    _, rest = await asyncio.wait_for(process.communicate(), 30)
    assert (process.returncode, rest) == (0, b"")


@pytest.mark.parametrize("port", ["http", "70000", "-1"])
async def test_an_invalid_port_is_reported_clearly(port: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "emceepee", "serve"), stderr=asyncio.subprocess.PIPE, env={**os.environ, "PORT": port}
    )
    _, said = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    assert said.decode() == f"emceepee: PORT: expected a port number, found {port!r}\n"
