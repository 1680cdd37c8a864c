"""Callers that disconnect just after a call starts: unread answers are kept."""

import asyncio
import random
from collections import Counter
from typing import Any

import pytest

from support.backends.web_backend import WebBackend
from support.callers.http_process import HttpCaller, HttpProcess
from support.callers.raw_connection import RawConnection
from support.figures import record_figure
from support.sessions.replies import told_events

pytestmark = pytest.mark.asyncio(loop_scope="module")
SLOW = {"server": "web", "tool": "wait"}
CALLS, EVENTS_PER_CALL, AT_ONCE = 400, 3, 8


@pytest.fixture(params=["handshake", "2026-07-28"])
def quick(request: pytest.FixtureRequest, endpoint: HttpProcess, caller: HttpCaller) -> HttpCaller:
    """A caller of each era in a session of its own, which has the server "web"."""
    return caller if request.param == "handshake" else endpoint.modern(emceepee_session=f"left-{random.random()}")


async def tasks_of(caller: HttpCaller) -> list[dict[str, Any]]:
    return list((await caller.value("list_tasks", include_completed=True))["tasks"])


async def test_the_answer_of_a_quick_call_is_kept_when_its_caller_disconnected(
    quick: HttpCaller, backend: WebBackend
) -> None:
    await quick.value("list_tools", server="web")
    for number in range(20):
        line = RawConnection(quick.endpoint.origin)
        line.call(quick, "execute_tool", **SLOW)
        call = await backend.next_call()
        line.cut()
        call.finish(f"answer {number}")
    kept: set[str] = set()
    async with asyncio.timeout(20):
        while len(kept) < 20:
            await quick.value("await_activity", timeout_ms=1000)
            kept = {task["taskId"] for task in await tasks_of(quick) if task["status"] == "completed"}
    results = [await quick.call("get_task_result", task_id=task) for task in kept]
    assert {result["content"][0]["text"] for result in results} == {f"answer {n}" for n in range(20)}
    record_figure(f"answers kept: {len(kept)} of 20")


async def test_an_answer_that_arrived_but_was_not_read_is_kept(quick: HttpCaller, backend: WebBackend) -> None:
    await quick.value("list_tools", server="web")
    line = RawConnection(quick.endpoint.origin)
    line.call(quick, "execute_tool", **SLOW)
    (await backend.next_call()).finish("unread")
    await line.until_data()
    line.cut()
    async with asyncio.timeout(20):
        while not (tasks := await tasks_of(quick)):
            await quick.value("await_activity", timeout_ms=1000)
    result = await quick.call("get_task_result", task_id=tasks[0]["taskId"])
    assert result["content"][0]["text"] == "unread"


@pytest.mark.parametrize("token", [None, "t"], ids=["plain", "streams"])
async def test_an_answer_that_ends_the_connection_is_not_kept_if_it_was_read(
    quick: HttpCaller, backend: WebBackend, token: str | None
) -> None:
    """A system acknowledges the first responses of a connection at once, and later ones after 40 ms."""
    await quick.value("list_tools", server="web")
    line = RawConnection(quick.endpoint.origin)
    for _ in range(20):
        line.received = b""
        line.call(quick, "list_timers")
        await line.answer()
    line.headers["connection"] = "close"
    line.call(quick, "execute_tool", token=token, **SLOW)
    call = await backend.next_call()
    if token is not None:
        call.progress(1, 1)
    call.finish("read")
    assert b"read" in await line.until_closed()
    assert await tasks_of(quick) == []


@pytest.mark.parametrize("token", [None, "t"], ids=["plain", "streams"])
async def test_no_event_is_lost_with_callers_that_disconnect_at_random(
    quick: HttpCaller, backend: WebBackend, token: str | None
) -> None:
    """The disconnect comes before, with, or after the unread answer. A remaining caller receives the missed events."""
    await quick.value("list_tools", server="web")
    rng, made, heard = random.Random(13), set[int](), Counter[int]()
    left = 0

    def hear(events: list[dict[str, Any]]) -> None:
        heard.update(event["data"]["params"]["n"] for event in events if event["type"] == "notification")

    async def one(number: int) -> bool:
        line = RawConnection(quick.endpoint.origin)
        line.call(quick, "execute_tool", token=token, **SLOW)
        call = await backend.next_call()
        if token is not None:
            call.progress(1, 1)
        for step in range(EVENTS_PER_CALL):
            made.add(number * EVENTS_PER_CALL + step)
            call.notify("notifications/odd", n=number * EVENTS_PER_CALL + step)
        fate = rng.choice(["stay", "stay", "leave first", "leave at once", "leave unread"])
        if fate == "leave first":
            line.cut()
        call.finish()
        if fate == "leave at once":
            for _ in range(rng.randrange(40)):
                await asyncio.sleep(0)
        elif fate == "leave unread":
            await line.until_data()
        elif fate == "stay":
            hear(told_events((await line.answer())["result"]))
        line.cut()
        return fate != "stay"

    async with asyncio.timeout(100):
        for first in range(0, CALLS, AT_ONCE):
            left += sum(await asyncio.gather(*(one(number) for number in range(first, first + AT_ONCE))))
        while made - set(heard):
            activity = await quick.value("await_activity", timeout_ms=2000)
            if activity["triggers"] == [{"type": "timeout"}]:
                break
            hear([event for group in activity["events"] for event in group["events"]])
    twice = sum(count > 1 for count in heard.values())
    record_figure(
        f"cut {left} of {CALLS} calls: {len(made - set(heard))} of {len(made)} events lost, {twice} told twice"
    )
    assert made - set(heard) == set()
    assert heard.total() - len(heard) <= left * EVENTS_PER_CALL * AT_ONCE
