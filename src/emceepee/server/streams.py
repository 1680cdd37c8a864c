"""Writing server-sent events to a caller, and noticing when it is gone."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from typing import Any

from emceepee.clock import Clock, within
from emceepee.lifecycle import TaskOwner
from emceepee.server.asgi import STREAM_HEADERS, Header, Receive, Send, until_gone
from emceepee.server.message_log import PING_SECONDS, Kept

PING = b": ping\n\n"


async def write_stream(send: Send, frames: AsyncIterator[bytes], *headers: Header) -> None:
    """Begin the response, write every frame as it comes, and end it."""
    await send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS, *headers]})
    async for frame in frames:
        await send({"type": "http.response.body", "body": frame, "more_body": True})
    await send({"type": "http.response.body", "body": b""})


async def kept_frames(entries: AsyncIterator[Kept | None]) -> AsyncIterator[bytes]:
    """Messages of a log, each with the id to come back with."""
    async for entry in entries:
        if entry is None:
            yield PING
        elif entry.data:
            yield b"id: %s\nevent: message\ndata: %s\n\n" % (entry.event_id.encode(), entry.data)
        else:
            yield b"id: %s\ndata: \n\n" % entry.event_id.encode()


async def queued_frames(queue: "asyncio.Queue[bytes | None]", clock: Clock) -> AsyncIterator[bytes]:
    """Messages without ids, up to the None that ends them."""
    while True:
        coming = asyncio.ensure_future(queue.get())
        try:
            data = await within(clock, PING_SECONDS, coming)
        except TimeoutError:
            coming.cancel()
            yield PING
            continue
        if data is None:
            return
        yield b"event: message\ndata: %s\n\n" % data


async def while_there(writing: Coroutine[Any, Any, None], send: Send, receive: Receive, tasks: TaskOwner) -> None:
    """Write until it is done, or the caller has hung up, or we are cancelled: then the response ends in order."""
    writer = tasks.spawn(writing, name="stream")
    watcher = tasks.spawn(until_gone(receive), name="watch")
    try:
        await asyncio.wait({writer, watcher}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        was_there = not watcher.done()
        watcher.cancel()
        if not writer.done():
            writer.cancel()
            await asyncio.wait({writer})
            if was_there:
                await send({"type": "http.response.body", "body": b""})
