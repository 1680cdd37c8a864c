import asyncio
import logging

import pytest

from emceepee.lifecycle import TaskOwner, close_bounded
from support.fakes.clock import settle


async def test_closing_completes_even_if_the_closer_is_cancelled() -> None:
    may_end, ended, owner = asyncio.Event(), asyncio.Event(), TaskOwner("test")

    async def slow_closing() -> None:
        await may_end.wait()
        ended.set()

    closer = owner.spawn(close_bounded(slow_closing(), within=5, what="it"))
    await settle()
    for _ in range(3):
        closer.cancel()
        await settle()
    assert not closer.done()
    may_end.set()
    await settle()
    assert ended.is_set()
    assert closer.cancelled(), "the cancellation must not be swallowed"


async def test_closing_that_never_ends_is_cancelled_after_its_timeout(caplog: pytest.LogCaptureFixture) -> None:
    given_up = asyncio.Event()

    async def stuck() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            given_up.set()

    async with asyncio.timeout(5):
        await close_bounded(stuck(), within=0.02, what="the stuck thing")
    await settle()
    assert given_up.is_set()
    assert "closing the stuck thing took longer than 0.02 s" in caplog.text


async def test_a_failure_while_closing_is_logged_and_not_raised(caplog: pytest.LogCaptureFixture) -> None:
    async def failing() -> None:
        raise RuntimeError("cannot close")

    async with asyncio.timeout(5):
        await close_bounded(failing(), within=5, what="it")
    assert "closing it failed: cannot close" in caplog.text


async def test_a_closing_task_owner_cancels_its_tasks_and_waits_for_their_cleanup() -> None:
    owner, last_steps = TaskOwner("test"), []

    async def work(number: int) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            last_steps.append(number)

    tasks = [owner.spawn(work(number), name="work") for number in range(3)]
    await settle()
    assert len(owner) == 3
    async with asyncio.timeout(5):
        await owner.close(within=5)
    assert sorted(last_steps) == [0, 1, 2]
    assert all(task.cancelled() for task in tasks)
    assert len(owner) == 0


async def test_a_closing_task_owner_does_not_wait_forever_for_a_stubborn_task(caplog: pytest.LogCaptureFixture) -> None:
    owner, released = TaskOwner("test"), asyncio.Event()

    async def stubborn() -> None:
        while not released.is_set():
            try:
                await released.wait()
            except asyncio.CancelledError:
                continue

    task = owner.spawn(stubborn(), name="stubborn")
    await settle()
    try:
        async with asyncio.timeout(5):
            await owner.close(within=0.02)
    finally:
        released.set()
    assert "test:stubborn did not end within 0.02 s" in caplog.text
    async with asyncio.timeout(5):
        await task


async def test_a_closed_task_owner_accepts_no_more_tasks() -> None:
    owner = TaskOwner("test")
    await owner.close(within=1)

    async def work() -> None: ...

    with pytest.raises(RuntimeError, match="test is closed"):
        owner.spawn(work())


async def test_a_task_can_close_its_own_task_owner() -> None:
    owner = TaskOwner("test")

    async def work() -> str:
        await owner.close(within=5)
        return "still here"

    async with asyncio.timeout(5):
        assert await owner.spawn(work()) == "still here"


async def test_an_unhandled_exception_of_a_task_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    owner = TaskOwner("test")

    async def broken() -> None:
        raise ValueError("a defect")

    owner.spawn(broken(), name="broken")
    await settle()
    assert len(owner) == 0
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.ERROR, "test:broken failed")
    ]
    assert "ValueError: a defect" in caplog.text
