"""The balancers of the documentation, as tests run them, in front of replicas."""

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from support.backends.web_backend import a_web_backend
from support.callers.emceepee_process import configured
from support.callers.http_process import HttpCaller, HttpProcess
from support.callers.replicas import TOKEN, two_replicas
from support.sessions.replies import told_events
from support.system.balancers import BALANCERS, balancer
from support.system.upstreams import running_upstreams

CALLS, AT_ONCE = 60, 6
pytestmark = pytest.mark.parametrize("name", BALANCERS)


async def test_each_balancer_distributes_requests_over_replicas_with_a_token_and_as_remote_callers(
    name: str, tmp_path: Path
) -> None:
    async with (
        running_upstreams("first", "second") as upstreams,
        balancer(name, [f"http://{each.address}" for each in upstreams], tmp_path, token="a token") as url,
        aiohttp.ClientSession() as http,
    ):
        answers = []
        for _ in range(8):  # on one connection
            async with http.post(url, data=b"{}", headers={"mcp-session-id": "the same"}) as response:
                answers.append(await response.text())
        assert answers == [each.name for each in upstreams] * 4
        headers = upstreams[0].received[0].headers
        assert headers["authorization"] == "Bearer a token"
        assert headers["x-forwarded-for"] == "127.0.0.1"


async def test_callers_behind_a_balancer_that_close_after_each_reply_get_each_event_once_and_no_task(
    name: str, tmp_path: Path
) -> None:
    """HAProxy resets its own connection when such a caller disconnects, although the reply was read."""
    heard: list[str] = []
    async with a_web_backend() as backend:
        env = configured({"web": {"url": backend.url}})
        async with (
            two_replicas(f"sqlite:{tmp_path}/state.db", env=env) as running,
            balancer(name, [each.origin for each in running], tmp_path, token=TOKEN) as url,
        ):
            async with aiohttp.ClientSession() as http:
                headers = (await HttpProcess(None, url, http).caller()).headers

            async def call(tool: str, /, **arguments: Any) -> dict[str, Any]:
                async with aiohttp.ClientSession() as http:
                    caller = HttpCaller(HttpProcess(None, url, http), headers)
                    result = await caller.call(tool, **arguments)
                heard.extend(event["id"] for event in told_events(result))
                return result

            for _ in range(0, CALLS, AT_ONCE):
                calls = [asyncio.create_task(call("execute_tool", server="web", tool="wait")) for _ in range(AT_ONCE)]
                for number in range(AT_ONCE):
                    held = await backend.next_call()
                    held.notify("notifications/odd", n=number)
                    held.finish()
                await asyncio.gather(*calls)
            tasks = await call("list_tasks", include_completed=True)
            assert tasks["structuredContent"]["tasks"] == []
    assert len(heard) >= CALLS
    assert len(heard) == len(set(heard))
