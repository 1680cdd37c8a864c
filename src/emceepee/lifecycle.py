"""Who owns a background task, and how things are closed: shielded from cancellation, bounded in time."""

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")

logger = logging.getLogger(__name__)

# How long each kind of closing may take before it is given up, with a warning.
CLOSE_IDLE_SECONDS = 1.0  # tasks that only wait, or only have a socket to close
CLOSE_TASKS_SECONDS = 5.0  # cancelled tasks that may still write an answer
CLOSE_LINK_SECONDS = 10.0  # a link: more than a child's whole way from end of input to SIGKILL
CLOSE_CONNECTION_SECONDS = 5 * CLOSE_LINK_SECONDS  # it may be opening and closing links meanwhile
CLOSE_SESSION_SECONDS = 30.0  # its connections close at the same time


class TaskOwner:
    """The background tasks of one object. They end, at the latest, when their owner closes."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._tasks: dict[asyncio.Task[Any], None] = {}  # not a set, which weighs more when it is empty
        self._closed = False

    def spawn(self, work: Coroutine[Any, Any, T], *, name: str = "") -> asyncio.Task[T]:
        """Run `work` in the background. A failure that it lets out is a defect of ours, and logged as one."""
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
                task.exception()  # takes the stored error, whose traceback keeps every frame, out of the task
        elif (error := task.exception()) is not None:
            logger.error("%s failed", task.get_name(), exc_info=error)

    def __len__(self) -> int:
        return len(self._tasks)

    async def close(self, *, within: float = CLOSE_TASKS_SECONDS) -> None:
        """Cancel what still runs and wait for it, but not for ever."""
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
    """Carry a closing step through even if we are cancelled meanwhile, but give it up after `within` seconds.

    A failure is logged and goes no further: it must not mask why we are closing.
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
