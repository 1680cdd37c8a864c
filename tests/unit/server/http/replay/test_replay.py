"""A caller resumes a stream under heavy load."""

import asyncio

import pytest

from emceepee.lifecycle import TaskOwner
from emceepee.server.http.replay.replay import Replay
from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import FakeClock
from support.in_process.asgi_messages import Answered


async def staying() -> JsonObject:
    """Return a caller that stays connected."""
    await asyncio.get_running_loop().create_future()
    return {"type": "http.disconnect"}


@pytest.mark.parametrize("flood", ["notifications", "answers"])
async def test_a_resuming_caller_gets_the_response_even_if_everything_else_is_evicted_before_its_reader_starts(
    flood: str,
) -> None:
    """The reader task takes its first step one turn after the stream was found."""
    tasks, answered = TaskOwner("replay"), Answered()
    replay = Replay(FakeClock(), Limits(replay_messages=100), tasks)
    opening = replay.log.append("request 1", b"")
    replay.log.append("request 1", b"answer", is_final=True)
    await replay.read(replay.find(opening.sent_id), Answered().send, staying, (b"x", b"y"))
    reading = asyncio.create_task(replay.read(replay.find(opening.sent_id), answered.send, staying, (b"x", b"y")))
    asyncio.get_running_loop().call_soon(fill, replay, flood)  # after the reader found the stream and before it reads
    async with asyncio.timeout(5):
        await reading
    assert b"data: answer\n" in answered.body
    await tasks.close(within=1)


def fill(replay: Replay, flood: str) -> None:
    for number in range(300):
        stream = f"request {number + 2}" if flood == "answers" else "request 2"
        replay.log.append(stream, b"%d" % number, is_final=flood == "answers")


async def test_a_reader_that_is_stopped_before_it_starts_retains_nothing() -> None:
    tasks = TaskOwner("replay")
    replay = Replay(FakeClock(), Limits(replay_messages=100), tasks)
    opening = replay.log.append("request 1", b"")
    replay.log.append("request 1", b"answer", is_final=True)
    writing = replay.open("request 1", opening.number, Answered().send, staying, (b"x", b"y"))
    writing.stop()
    await writing.wait_until_finished()
    fill(replay, "answers")
    assert replay.find(opening.sent_id) is None
    await tasks.close(within=1)
