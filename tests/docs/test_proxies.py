"""The proxies' configurations in the documentation work."""

import io
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from support.backends.web_backend import WebBackend, a_web_backend
from support.callers.emceepee_process import configured
from support.callers.http_process import HttpCaller, HttpProcess, http_process
from support.server_programs.stdio_entries import stdio_server
from support.sessions.replies import told_events
from support.system.balancers import BALANCERS, EXAMPLE_NAME, ONE_PROCESS, adapt_example, documented, running_balancer
from support.system.ports import free_port
from support.waiting import eventually

CALLS = 60


@asynccontextmanager
async def behind(proxy: str, endpoint: HttpProcess, folder: Path) -> AsyncIterator[HttpProcess]:
    """An emceepee, reached through the proxy."""
    port, address = free_port(), endpoint.origin.removeprefix("http://")
    text = adapt_example(
        proxy, documented(ONE_PROCESS, proxy), folder, port=port, addresses={"127.0.0.1:8080": address}
    )
    tls = ssl.create_default_context(cafile=folder / "certificate.pem")
    async with (
        running_balancer(proxy, text, folder, port=port),
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as http,
    ):
        through = HttpProcess(None, f"https://127.0.0.1:{port}/mcp", http)

        async def is_up() -> bool:
            async with http.get(f"{through.origin}/healthz") as response:
                return response.status == 200

        await eventually(is_up, what=f"{proxy} has found emceepee")
        yield through


@pytest.mark.parametrize("proxy", BALANCERS)
async def test_callers_behind_the_documented_proxy_are_remote_and_use_streams_and_large_bodies(
    proxy: str, tmp_path: Path
) -> None:
    async with a_web_backend() as backend:
        env = configured({"web": {"url": backend.url}, "small": stdio_server()}) | {"EMCEEPEE_TOKEN": "secret"}
        async with (
            http_process("--log-level", "warn", "--allow-host", EXAMPLE_NAME, "--allow-commands", env=env) as endpoint,
            behind(proxy, endpoint, tmp_path) as through,
        ):
            async with through.http.post(through.url, json={}, headers={"host": EXAMPLE_NAME}) as response:
                assert response.status == 401
            async with through.http.get(through.origin, headers={"host": "evil.example"}) as response:
                assert response.status in (404, 421)
            caller = await through.caller(host=EXAMPLE_NAME, authorization="Bearer secret")
            await check(caller, backend)
            assert (await caller.error("remove_server", name="small"))["code"] == "ERR_NOT_ALLOWED", "it is remote"


@pytest.mark.parametrize("proxy", BALANCERS)
async def test_a_caller_behind_a_proxy_that_closes_after_each_reply_gets_each_event_once_and_no_task(
    proxy: str, tmp_path: Path
) -> None:
    """HAProxy resets its own connection when such a caller disconnects, although the reply was read."""
    env = configured({"small": stdio_server()}) | {"EMCEEPEE_TOKEN": "secret"}
    async with (
        http_process("--log-level", "warn", "--allow-host", EXAMPLE_NAME, env=env) as endpoint,
        behind(proxy, endpoint, tmp_path) as through,
    ):
        caller = await through.caller(host=EXAMPLE_NAME, authorization="Bearer secret")
        tls = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
        events = []
        for _ in range(CALLS):
            async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as caller.endpoint.http:
                result = await caller.call("execute_tool", server="small", tool="echo", args={"text": "x"})
            events += [event["id"] for event in told_events(result)]
        assert events
        assert len(events) == len(set(events))
        async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as caller.endpoint.http:
            assert (await caller.value("list_tasks", include_completed=True))["tasks"] == []


async def check(caller: HttpCaller, backend: WebBackend) -> None:
    """Progress comes before the answer does, large texts pass, and a call outlives its caller."""
    async with caller.stream("execute_tool", server="web", tool="wait") as stream:
        call = await backend.next_call()
        for step in range(1, 4):
            call.progress(step, step)
            event = await stream.next()
            while event is not None and (event.message is None or "method" not in event.message):
                event = await stream.next()
            assert event is not None
            assert event.message is not None
            assert event.message["params"]["progress"] == step
        call.finish("done")
        assert (await stream.rest())[-1].message is not None
    text = "x" * 3_500_000
    echo = {"server": "small", "tool": "echo", "args": {"text": text}}
    message = caller.message("tools/call", {"name": "execute_tool", "arguments": echo})
    headers = caller.headers | {"content-type": "application/json"}
    large = io.BytesIO(json.dumps(message).encode())
    async with caller.endpoint.http.post(caller.endpoint.url, data=large, headers=headers) as response:
        assert response.status == 200
        assert len(await response.read()) > len(text)
    async with caller.stream("execute_tool", server="web", tool="wait") as stream:
        call = await backend.next_call()
        call.progress(1, 1)
        await stream.some(2)
        connection = stream.response.connection
        assert connection is not None
        assert connection.transport is not None
        connection.transport.abort()  # closing politely would wait for the proxy to do the same
    step, activity = 1, ""
    while "task_created" not in activity:
        step += 1
        call.progress(step, step)  # HAProxy hears of the hang-up when it writes
        activity = str(await caller.value("await_activity", timeout_ms=200))
    call.finish("kept")
    (task,) = (await caller.value("list_tasks", include_completed=True))["tasks"]
    assert (await caller.call("get_task_result", task_id=task["taskId"]))["content"][0]["text"] == "kept"
