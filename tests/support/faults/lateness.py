"""How late a busy machine lets things happen, measured all the time, so that bounds need no slack for the worst one."""

import asyncio
from bisect import bisect_left
from types import TracebackType
from typing import Self

from support.faults.timeline import Span, moment

BEAT_SECONDS = 0.05
NOTICED_SECONDS = 0.01  # less is the loop's own work
PROCESSES = 4  # that take turns in a request: who asks, who passes it on, who has the session, and the store


class Lateness:
    """Beats until the block is left. Each beat that comes late tells for how long this process had no processor."""

    def __init__(self) -> None:
        self._late: list[Span] = []  # from when a beat was due until it came
        self._beating: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._beating = asyncio.create_task(self._beat())
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._beating is not None
        self._beating.cancel()
        await asyncio.wait({self._beating})

    @property
    def in_all(self) -> float:
        return sum(late.ended - late.began for late in self._late)

    @property
    def longest(self) -> float:
        return max((late.ended - late.began for late in self._late), default=0.0)

    def add(self, late: Span) -> None:
        self._late.append(late)

    def seconds(self, span: Span) -> float:
        """By how much a request took longer that was on its way then: others wait for a processor as this one does."""
        first = bisect_left(self._late, span.began, key=lambda late: late.ended)
        waited = 0.0
        for late in self._late[first:]:
            if late.began >= span.ended:
                break
            waited += min(late.ended, span.ended) - max(late.began, span.began)
        return PROCESSES * waited

    async def _beat(self) -> None:
        while True:
            due = moment() + BEAT_SECONDS
            await asyncio.sleep(BEAT_SECONDS)  # a beat is a time
            if moment() - due > NOTICED_SECONDS:
                self.add(Span(due, moment()))
