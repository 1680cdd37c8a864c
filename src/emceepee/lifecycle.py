"""Ownership of background tasks, and closing that is shielded from cancellation and bounded in time."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)

# The time limit of each kind of close. After it, the close is abandoned with a warning.
CLOSE_IDLE_SECONDS = 1.0  # tasks that only wait, or only have a socket to close
CLOSE_TASKS_SECONDS = 5.0  # cancelled tasks that may still write an answer
CLOSE_LINK_SECONDS = 10.0  # a link: more than a child process needs from end of input to SIGKILL
CLOSE_CONNECTION_SECONDS = 5 * CLOSE_LINK_SECONDS  # it may be opening and closing links at the time
CLOSE_SESSION_SECONDS = 30.0  # its connections close concurrently


class TaskOwner:
    """The background tasks of one object. They end, at the latest, when their owner closes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: dict[asyncio.Task[Any], None] = {}  # a dict, because an empty set takes more memory
        self._closed = False

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str = "") -> asyncio.Task[T]:
        """Run `work` in the background. An uncaught exception is our defect and is logged as one."""
        if self._closed:
            work.close()
            raise RuntimeError(f"{self._name} is closed")
        task = asyncio.create_task(work, name=f"{self._name}:{name}" if name else self._name)
        self._tasks[task] = None
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.pop(task, None)
        if task.cancelled():
            with suppress(asyncio.CancelledError):
                task.exception()  # removes the stored error, whose traceback references every frame
        elif (error := task.exception()) is not None:
            logger.error("%s failed", task.get_name(), exc_info=error)

    def __len__(self) -> int:
        return len(self._tasks)

    async def close(self, *, within: float = CLOSE_TASKS_SECONDS) -> None:
        """Cancel the running tasks and wait for them, with a time limit."""
        self._closed = True
        current = asyncio.current_task()
        tasks = [task for task in self._tasks if task is not current]
        for task in tasks:
            task.cancel()
        if tasks:
            _, stuck = await asyncio.wait(tasks, timeout=within)
            for task in stuck:
                logger.warning("%s did not end within %s s", task.get_name(), within)


async def close_bounded(work: Awaitable[object], *, within: float, what: str) -> None:
    """Complete a closing step even if this task is cancelled, but abandon it after `within` seconds.

    A failure is only logged: it must not hide the reason for closing.
    """
    closing = asyncio.ensure_future(work)
    cancelled = False
    deadline = asyncio.get_running_loop().time() + within
    while not closing.done() and (left := deadline - asyncio.get_running_loop().time()) > 0:
        try:
            await asyncio.wait({closing}, timeout=left)
        except asyncio.CancelledError:
            cancelled = True
    if not closing.done():
        closing.cancel()
        logger.warning("closing %s took longer than %s s and was given up", what, within)
    elif not closing.cancelled() and (error := closing.exception()) is not None:
        logger.warning("closing %s failed: %s", what, error)
    if cancelled:
        raise asyncio.CancelledError
