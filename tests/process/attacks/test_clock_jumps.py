"""Setting the wall clock neither delays nor hastens timers and timeouts."""

import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest

from support.callers.emceepee_process import configured, emceepee
from support.callers.recorder import Recorder, hostile
from support.figures import record_figure
from support.programs import jumping_emceepee

JUMPS = {signal.SIGVTALRM: timedelta(hours=1), signal.SIGUSR2: timedelta(hours=-1)}
both_ways = pytest.mark.parametrize("jump", JUMPS, ids=["an hour ahead", "an hour back"])


@asynccontextmanager
async def running() -> AsyncIterator[Recorder]:
    server = {key: value for key, value in hostile().items() if key != "name"}
    async with emceepee(env=configured({"one": server}), entry=(jumping_emceepee.__file__,)) as caller:
        await caller.initialize()
        yield Recorder(caller)


async def after_the_alarm(caller: Recorder) -> None:
    """Every due timer has fired."""
    await caller.value("set_timer", duration_ms=50, message="now")
    await caller.until("timer_expired")


@both_ways
async def test_a_timer_fires_on_time_after_a_clock_jump(jump: signal.Signals) -> None:
    async with running() as caller:
        began = time.monotonic()
        await caller.value("set_timer", duration_ms=1000, message="tea")
        caller.process.process.send_signal(jump)
        await caller.until("timer_expired")
        took = time.monotonic() - began
        record_figure(f"a timer of 1 s fired after {took:.2f} s")
        assert 0.9 < took < 10


@both_ways
async def test_nothing_expires_early_after_a_clock_jump(jump: signal.Signals) -> None:
    async with running() as caller:
        working = (await caller.value("execute_tool", server="one", tool="hang", timeout_ms=0))["proxy_task"]["task_id"]
        asking = (await caller.value("execute_tool", server="one", tool="ask"))["proxy_task"]["task_id"]
        done = (await caller.value("execute_tool", server="one", tool="echo", timeout_ms=0))["proxy_task"]["task_id"]
        await caller.until("task_completed")
        await caller.value("set_timer", duration_ms=1_800_000, message="later")
        caller.process.process.send_signal(jump)
        await after_the_alarm(caller)
        tasks = {task["taskId"]: task["status"] for task in await all_tasks(caller)}
        assert tasks == {working: "working", asking: "working", done: "completed"}
        assert len((await caller.value("get_elicitations"))["requests"]) == 1
        assert "later" in [timer["message"] for timer in (await caller.value("list_timers"))["timers"]]
        assert "task_expired" not in caller.types
        assert "elicitation_expired" not in caller.types


async def all_tasks(caller: Recorder) -> list[dict[str, str]]:
    return list((await caller.value("list_tasks", include_completed=True))["tasks"])


@both_ways
async def test_times_are_shown_according_to_the_current_wall_clock(jump: signal.Signals) -> None:
    """This includes the times of earlier events."""
    async with running() as caller:
        await caller.value("set_timer", duration_ms=60_000, message="tea")
        caller.process.process.send_signal(jump)
        await after_the_alarm(caller)
        [timer] = (await caller.value("list_timers"))["timers"]
        now = datetime.now(UTC) + JUMPS[jump]
        assert abs((datetime.fromisoformat(timer["createdAt"]) - now).total_seconds()) < 20
        assert 30 < (datetime.fromisoformat(timer["expiresAt"]) - now).total_seconds() <= 60
