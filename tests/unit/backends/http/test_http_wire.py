"""A server that sends a lot at once does not delay other work on the event loop."""

import asyncio
from contextlib import aclosing
from typing import Any

from emceepee.backends.http.event_stream import TURN_BYTES, turns
from emceepee.backends.http.http_wire import HttpWire
from emceepee.wire.codec import encode
from support.fakes.clock import FakeClock
from support.figures import record_figure

CHUNK_BYTES = 512 << 10  # the most bytes that arrive between two turns of the loop


class Arrived:
    """A response whose body has arrived completely."""

    def __init__(self, chunk: bytes) -> None:
        self._chunks = [chunk]

    async def readany(self) -> bytes:
        return self._chunks.pop() if self._chunks else b""

    def close(self) -> None: ...

    def discard(self) -> None: ...


class NoHttp:
    """An HTTP client that sends nothing."""

    url = "http://localhost/mcp"

    def set_header(self, name: str, value: str | None) -> None: ...


async def most_in_a_turn(chunk: bytes) -> tuple[int, int]:
    """Return the number of messages in total, and the maximum in one turn of the loop."""
    wire = HttpWire(NoHttp(), clock=FakeClock(), largest=1 << 20)  # type: ignore[arg-type]  # nothing is sent
    loop = asyncio.get_running_loop()
    told = [0]

    def turn() -> None:
        told.append(0)
        loop.call_soon(turn)

    loop.call_soon(turn)
    response: Any = Arrived(chunk)
    async with asyncio.timeout(30), aclosing(wire.stream(response, resumable=False)) as messages:
        async for _ in messages:
            told[-1] += 1
    return sum(told), max(told)


async def test_a_flood_of_sse_events_is_parsed_in_bounded_portions_per_loop_turn() -> None:
    message = b"event: message\ndata: %s\n\n" % encode({"jsonrpc": "2.0", "method": "notifications/odd"})
    sent = CHUNK_BYTES // len(message)
    heard, most = await most_in_a_turn(message * sent)
    record_figure(f"{sent} messages arrive at once: at most {most} in one turn of the loop")
    assert heard == sent
    assert most <= TURN_BYTES // len(message) + 1


async def test_an_sse_event_in_many_chunks_is_parsed_whole() -> None:
    message = b"event: message\ndata: %s\n\n" % encode({"jsonrpc": "2.0", "id": 1, "result": "x" * 10 * TURN_BYTES})
    assert await most_in_a_turn(message) == (1, 1)


def test_turns_splits_a_chunk_into_bounded_parts_without_losing_bytes() -> None:
    for size in (0, 1, TURN_BYTES, TURN_BYTES + 1, 3 * TURN_BYTES):
        chunk = bytes(size)
        parts = list(turns(chunk))
        assert b"".join(parts) == chunk
        assert max(map(len, parts)) <= TURN_BYTES
