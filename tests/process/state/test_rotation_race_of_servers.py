"""Eight real `emceepee serve` processes share one login with a single-use refresh token."""

import asyncio
import json
from collections import Counter
from pathlib import Path

import pytest

from support.callers.http_process import HttpCaller, HttpProcess
from support.callers.replicas import TOKEN, replicas
from support.figures import record_figure
from support.matrix import matrix
from support.system.authorization_server import AuthorizationServer, an_authorization_server
from support.system.redis_server import RedisServer

PROCESSES = 8
REFRESHES = 1000
REFUSED, USES = 30, 100  # of them are made because a token is refused after so many calls that should live for long


async def a_caller(process: HttpProcess) -> HttpCaller:
    return await process.caller(authorization=f"Bearer {TOKEN}")


async def log_in(caller: HttpCaller) -> None:
    reply = await caller.call("execute_tool", server="tracker", tool="echo", args={})
    (question,) = (await caller.value("get_elicitations"))["requests"]
    async with caller.endpoint.http.get(question["url"]) as page:
        assert page.status == 200, await page.text()
    task = reply["structuredContent"]["proxy_task"]["task_id"]
    assert not (await caller.call("get_task_result", task_id=task)).get("isError")


def refreshes(server: AuthorizationServer) -> int:
    return sum(form.fields["grant_type"] == "refresh_token" for form in server.forms)


async def call_until(caller: HttpCaller, server: AuthorizationServer, goal: int) -> Counter[str]:
    """The outcomes of the calls."""
    seen: Counter[str] = Counter()
    while refreshes(server) < goal:
        reply = await caller.call("execute_tool", server="tracker", tool="echo", args={})
        seen[reply["content"][0]["text"]] += 1
    return seen


async def race(callers: list[HttpCaller], server: AuthorizationServer, goal: int) -> Counter[str]:
    seen = await asyncio.gather(*(call_until(caller, server, goal) for caller in callers))
    return sum(seen, Counter[str]())


@pytest.mark.parametrize("kind", matrix(["sqlite", "redis"], representatives=["sqlite"]))
async def test_calls_at_eight_servers_refresh_one_login_without_another_login_question(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """At first each token expires at once. Then the server refuses valid tokens after some calls."""
    redis: RedisServer | None = request.getfixturevalue("redis") if kind == "redis" else None
    state = f"sqlite:{tmp_path / 'state.db'}" if redis is None else redis.url()
    loop = asyncio.get_running_loop()
    async with an_authorization_server() as server:
        file = tmp_path / "servers.json"
        file.write_text(json.dumps({"mcpServers": {"tracker": {"url": server.resource}}}))
        async with replicas(PROCESSES, state, "--config", str(file)) as processes:
            callers = [await a_caller(process) for process in processes]
            await log_in(callers[0])
            began = loop.time()
            server.lives = 0
            server.valid.clear()
            seen = await race(callers, server, REFRESHES - REFUSED)
            server.lives, server.uses = 3600, USES
            seen += await race(callers, server, REFRESHES)
            seconds = loop.time() - began
            assert [await asked(caller) for caller in callers] == [0] * PROCESSES
    assert set(seen) == {"echo"}
    assert (server.asked, server.replayed) == (1, 0)
    assert refreshes(server) >= REFRESHES
    record_figure(
        f"{refreshes(server)} refreshes and {seen.total()} calls at {PROCESSES} servers on {kind} took {seconds:.0f} s"
    )


async def asked(caller: HttpCaller) -> int:
    return len((await caller.value("get_elicitations"))["requests"])
