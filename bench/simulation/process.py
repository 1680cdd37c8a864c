"""Tasks of a simulated process: they stop while it is paused, and end with it."""

import types
from collections.abc import Coroutine, Generator
from typing import Any, Protocol, TypeVar

from bench.simulation.scheduler import Scheduler

T = TypeVar("T")


class ReplicaLost(Exception):
    """Nobody will hear anything of what was asked of it."""


class Process(Protocol):
    clock: Scheduler
    is_lost: bool
    paused_until: float


@types.coroutine
def run_in(process: Process, work: Coroutine[Any, Any, T]) -> Generator[object, None, T]:
    """Raises: ReplicaLost."""
    clock = process.clock
    try:
        while True:
            while clock.time < process.paused_until:
                yield process.paused_until - clock.time
            if process.is_lost:
                raise ReplicaLost
            try:
                awaited = work.send(None)
            except StopIteration as done:
                result: T = done.value
                return result
            yield awaited
    finally:
        work.close()
