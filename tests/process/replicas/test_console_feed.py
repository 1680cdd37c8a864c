"""The console of one replica shows the sessions of all replicas and supports every action on them."""

import asyncio
import json
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from support.callers.emceepee_process import configured
from support.callers.http_process import HttpCaller
from support.callers.restartable_process import RestartableProcess, restartable_process
from support.console.feed_reader import FeedReader, an_open_feed
from support.console.http_browser import Browser
from support.console.running_console import puppet
from support.waiting import eventually

FORM = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
QUESTION = {"method": "elicitation/create", "params": {"message": "Your name?", "requestedSchema": FORM}}


@dataclass
class TwoReplicas:
    """A person has logged in at `here`."""

    here: RestartableProcess
    there: RestartableProcess
    browser: Browser

    @asynccontextmanager
    async def feed(self) -> AsyncIterator[FeedReader]:
        async with an_open_feed(self.here.http, self.browser) as reader:
            yield reader

    async def post(self, path: str, **given: Any) -> tuple[int, Any]:
        seen = await self.browser.fetch("POST", path, json=given)
        return seen.status, json.loads(seen.text)

    async def get(self, path: str, **query: str) -> tuple[int, Any]:
        seen = await self.browser.fetch("GET", path, params=query)
        return seen.status, json.loads(seen.text)


@pytest_asyncio.fixture
async def replicas(tmp_path: Path) -> AsyncIterator[TwoReplicas]:
    env = configured({"curious": puppet(tmp_path)}, replica_lease_seconds=1)
    async with AsyncExitStack() as stack:
        here, there = [
            await stack.enter_async_context(restartable_process(tmp_path, "--log-level", "warn", env=env))
            for _ in range(2)
        ]
        browser = Browser(here.http, here.origin)
        await browser.come_in(here.log)
        yield TwoReplicas(here, there, browser)


def ask(caller: HttpCaller) -> "asyncio.Task[dict[str, Any]]":
    arguments = {"server": "curious", "tool": "speak", "args": {"ask": QUESTION}, "on_question": "wait"}
    return asyncio.create_task(caller.call("execute_tool", **arguments))


async def test_the_console_feed_of_one_replica_shows_the_sessions_of_both(replicas: TwoReplicas) -> None:
    await replicas.here.caller(client="near")
    far = await replicas.there.caller(client="far")
    async with replicas.feed() as page:
        await page.shows("near", "far")
        later = await replicas.there.caller(client="later")
        await page.shows("near", "far", "later")
        await far.value("set_timer", duration_ms=60_000, message="tea")
        await eventually(lambda: [each["message"] for each in page.session("far")["timers"]] == ["tea"])
        await later.end()
        await page.shows("near", "far")
    _, document = await replicas.get("/waterfall/json")
    assert document["stats"]["sessionCount"] == 2
    assert "set_timer" in [row["name"] for rows in document["sessions"].values() for row in rows]


async def test_the_console_answers_a_question_at_the_other_replica(replicas: TwoReplicas) -> None:
    far = await replicas.there.caller(client="far")
    async with replicas.feed() as page:
        await page.shows("far")
        call = ask(far)
        await eventually(lambda: bool(page.session("far")["questions"]), what="the question is shown")
        session = page.session("far")["id"]
        [question] = page.session("far")["questions"]
        wanted = {"session": session, "requestId": question["requestId"], "action": "accept"}
        status, refusal = await replicas.post("/console/answer", **wanted, content={"name": 5})
        assert (status, refusal["error"]["code"]) == (400, "ERR_INVALID_ARGUMENTS")
        assert await replicas.post("/console/answer", **wanted, content={"name": "Jo"}) == (
            200,
            {"responded": question["requestId"]},
        )
        answered = (await call)["structuredContent"]["value"]
        assert answered == {"action": "accept", "content": {"name": "Jo"}}
        status, refusal = await replicas.post("/console/answer", **wanted, content={"name": "Jo"})
        assert (status, refusal["error"]["code"]) == (404, "ERR_REQUEST_NOT_FOUND")


async def test_every_other_console_action_works_at_the_other_replica(replicas: TwoReplicas) -> None:
    """Without an open page, the holder of the session is unknown: all other replicas are asked."""
    far = await replicas.there.caller(client="far")
    timer = await far.value("set_timer", duration_ms=60_000, message="tea")
    await far.call("execute_tool", server="curious", tool="speak", args={"result": {"content": []}})
    document: dict[str, Any] = {}

    async def is_shown() -> bool:
        document.update((await replicas.get("/waterfall/json"))[1])
        return bool(document["sessions"])

    await eventually(is_shown, what="the replicas know each other")
    [(session, rows)] = document["sessions"].items()
    [request] = [row for row in rows if row["name"] == "speak"]
    status, full = await replicas.get("/console/request", session=session, id=request["requestId"])
    assert (status, full["request"]["name"]) == (200, "speak")
    status, gone = await replicas.post("/console/delete-timer", session=session, timerId=timer["timerId"])
    assert (status, gone["timer"]["status"]) == (200, "deleted")
    status, server = await replicas.post("/console/reconnect", session=session, server="curious")
    assert (status, server["server"]["status"]) == (200, "connected")
    assert (await replicas.get("/console/task", session=session, id="none"))[0] == 404
    assert await replicas.post("/console/end-session", session=session) == (200, {"ended": session})
    status, refusal = await replicas.post("/console/end-session", session=session)
    assert (status, refusal["error"]["code"]) == (404, "TOOL_ERR_SESSION_NOT_FOUND")


async def test_a_replica_that_joins_later_appears_in_the_console(replicas: TwoReplicas) -> None:
    await replicas.there.stop()
    async with replicas.feed() as page:
        await replicas.there.start()
        await replicas.there.caller(client="far")
        await page.shows("far")


async def test_the_sessions_of_a_killed_replica_disappear_and_return_with_their_next_holder(
    replicas: TwoReplicas,
) -> None:
    far = await replicas.there.caller(client="far")
    await replicas.there.caller(client="idle")
    async with replicas.feed() as page:
        await page.shows("far", "idle")
        call = ask(far)
        await eventually(lambda: bool(page.session("far")["questions"]), what="the question is shown")
        session = page.session("far")["id"]
        await replicas.there.kill()
        call.cancel()
        moved = HttpCaller(replicas.here, {})
        moved.headers |= far.headers
        await moved.value("list_servers")
        await page.shows("far")  # it is here now; the other one is nowhere
        assert page.session("far")["id"] == session
        await eventually(lambda: "pending" not in [row["status"] for row in page.rows.values()], what="all have ended")


@pytest.mark.parametrize("how", ["stop", "kill"])
async def test_a_session_that_moves_at_once_does_not_flicker_in_the_console(replicas: TwoReplicas, how: str) -> None:
    far = await replicas.there.caller(client="far")
    await replicas.there.caller(client="idle")
    async with replicas.feed() as page:
        await page.shows("far", "idle")
        idle = page.session("idle")["id"]
        await (replicas.there.stop() if how == "stop" else replicas.there.kill())
        moved = HttpCaller(replicas.here, {})
        moved.headers |= far.headers
        await moved.value("list_timers")
        await page.shows("far")
        assert page.gone == [idle]


async def test_a_paused_replica_does_not_block_the_console_page(replicas: TwoReplicas) -> None:
    await replicas.here.caller(client="near")
    await replicas.there.caller(client="far")
    async with replicas.feed() as page:
        await page.shows("near", "far")
        replicas.there.process.send_signal(signal.SIGSTOP)
        try:
            await replicas.here.caller(client="new")
            await eventually(lambda: "new" in page.labels(), what="the page goes on", within=5)
            async with replicas.feed() as another:
                assert {"near", "new"} <= another.labels()
        finally:
            replicas.there.process.send_signal(signal.SIGCONT)
        await page.shows("near", "far", "new")
