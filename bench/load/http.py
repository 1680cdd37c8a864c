"""Callers over HTTP: each has a keep-alive connection, and asks again as soon as it has the answer."""

import asyncio
import re
from collections.abc import Sequence
from time import perf_counter
from typing import cast

from bench.load.sample import Sample, WrongAnswer

BOUND = 90.0  # seconds beyond the wanted ones until the run is given up
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_TAIL = 4096  # the mark stands near the end of a body


class _Run:
    """The state that the callers of one run share."""

    def __init__(self, callers: int, mark: bytes, deadline: float) -> None:
        self.mark, self.deadline = mark, deadline
        self.latencies: list[float] = []
        self.ended = asyncio.get_running_loop().create_future()
        self._at_work = callers

    def leave(self) -> None:
        self._at_work -= 1
        if self._at_work == 0 and not self.ended.done():
            self.ended.set_result(None)

    def fail(self, error: Exception) -> None:
        if not self.ended.done():
            self.ended.set_exception(error)


class Caller(asyncio.Protocol):
    """Sends one request again and again."""

    def __init__(self, request: bytes) -> None:
        self._request = request
        self._parts: list[bytes] = []
        self._missing = -1  # bytes of the body; -1 while unknown
        self._began = 0.0
        self._transport: asyncio.Transport | None = None
        self.run: _Run | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own says nothing of its kind

    def connection_lost(self, exc: Exception | None) -> None:
        if self.run is not None:
            self.run.fail(WrongAnswer(f"the connection was closed: {exc}"))

    def begin(self, run: _Run) -> None:
        self.run = run
        self._ask()

    def close(self) -> None:
        self.run = None
        if self._transport is not None:
            self._transport.close()

    def _ask(self) -> None:
        assert self._transport is not None
        self._began = perf_counter()
        self._transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if self._missing >= 0:
            self._parts.append(data)
            self._missing -= len(data)
            if self._missing <= 0:
                self._answered(b"".join(self._parts))
            return
        if self._parts:
            self._parts.append(data)
            data = b"".join(self._parts)
        end = data.find(b"\r\n\r\n")
        length = _LENGTH.search(data, 0, end) if end >= 0 else None
        if length is not None:
            missing = end + 4 + int(length[1]) - len(data)
            if missing == 0:
                self._answered(data)
                return
            self._missing = missing
        elif end >= 0 and data.endswith(b"\r\n0\r\n\r\n"):  # chunked: nothing follows before we ask again
            self._answered(data)
            return
        self._parts = [data]

    def _answered(self, data: bytes) -> None:
        now, run = perf_counter(), self.run
        self._parts, self._missing = [], -1
        if run is None:
            return
        if not data.startswith(b"HTTP/1.1 200") or run.mark not in data[-_TAIL:]:
            run.fail(WrongAnswer(f"{data[:600]!r}"))
            return
        run.latencies.append(now - self._began)
        if now < run.deadline:
            self._ask()
        else:
            run.leave()


async def call_for(seconds: float, requests: Sequence[bytes], *, port: int, mark: str) -> Sample:
    """One caller for each request, all at once, each on a new connection. As `call_on`."""
    loop = asyncio.get_running_loop()
    callers: list[Caller] = []
    try:
        for request in requests:
            _, caller = await loop.create_connection(lambda r=request: Caller(r), "127.0.0.1", port)  # type: ignore[misc] # mypy cannot infer a lambda with a default
            callers.append(caller)
        return await call_on(callers, seconds, mark=mark)
    finally:
        for caller in callers:
            caller.close()


async def call_on(callers: Sequence[Caller], seconds: float, *, mark: str) -> Sample:
    """All call at once, each on its connection. With 0 seconds each calls once. Raises: WrongAnswer."""
    began = perf_counter()
    run = _Run(len(callers), mark.encode(), began + seconds)
    for caller in callers:
        caller.begin(run)
    async with asyncio.timeout(seconds + BOUND):
        await run.ended
    for caller in callers:
        caller.run = None
    return Sample(seconds=perf_counter() - began, latencies=run.latencies)
