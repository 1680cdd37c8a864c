"""A large result that a killed replica stored in a real Redis is read at another replica."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.backends.counting_http import CountingBackend
from support.callers.http_process import HttpCaller
from support.callers.replicas import TOKEN, restartable_replicas
from support.figures import record_figure
from support.system.redis_server import RedisServer

LINES = "".join(f"{number}: größe {'x' * (number % 50)}\n" for number in range(20_000))  # several chunks of it
PART = 200_000


@pytest.fixture
async def backend() -> AsyncIterator[CountingBackend]:
    backend = CountingBackend()
    await backend.start()
    yield backend
    await backend.stop()


async def read_from(caller: HttpCaller, handle: str, offset: int) -> str:
    """Part by part, to the end."""
    found, following = "", offset
    while True:
        part = await caller.value("read_result", handle=handle, offset=following, limit=PART)
        found += str(part["text"])
        if "nextOffset" not in part:
            return found
        following = part["nextOffset"]


async def test_a_large_result_of_a_killed_replica_can_be_read_to_its_end_at_another(
    backend: CountingBackend, redis: RedisServer, tmp_path: Path
) -> None:
    whole = LINES.encode()
    async with restartable_replicas(tmp_path, 2, "--state", redis.url(), env={}) as (one, other):
        caller = one.modern(emceepee_session="desk", authorization=f"Bearer {TOKEN}")
        await caller.value("add_server", name="one", url=backend.url)
        given = {"server": "one", "tool": "echo", "args": {"id": "large", "text": LINES}, "max_bytes": 4000}
        told = (await caller.value("execute_tool", **given))["large_result"]
        assert told["bytes"] == len(whole)
        first = await caller.value("read_result", handle=told["handle"], limit=PART)
        await one.kill()
        taker = other.modern(emceepee_session="desk", authorization=f"Bearer {TOKEN}")
        rest = await read_from(taker, told["handle"], first["nextOffset"])
        assert first["text"] + rest == LINES
        found = await taker.value("read_result", handle=told["handle"], grep="^1999\\d: größe")
        assert [line["line"] for line in found["lines"]] == list(range(19_991, 20_001))
        place = found["lines"][0]["offset"]
        assert whole[place:].decode().startswith("19990: größe")
    assert backend.ran == {"large": 1}
    record_figure(f"{len(whole) >> 10} KiB that a killed replica kept were read at another")
