"""Two windows of one client at the plain address, with real connections."""

import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import aiohttp
import pytest

from support.callers.http_process import HttpProcess, Json, ModernCaller, http_process

DEMO = {"name": "demo", "command": sys.executable, "args": ["-m", "emceepee.demo"]}
BOOK = {"server": "demo", "tool": "book_table"}


@asynccontextmanager
async def windows(*options: str) -> AsyncIterator[tuple[ModernCaller, ModernCaller]]:
    """Each with connections of its own."""
    async with AsyncExitStack() as stack:
        endpoint = await stack.enter_async_context(http_process(*options))
        pools = [await stack.enter_async_context(aiohttp.ClientSession()) for _ in range(2)]
        first, second = (HttpProcess(None, endpoint.url, pool).modern(client="windows") for pool in pools)
        await first.value("add_server", **DEMO)
        await second.value("list_timers")
        yield first, second


def waiting(result: Json) -> Json:
    return dict(result["structuredContent"]["pending_client_action"])


@pytest.mark.parametrize("options", [(), ("--workers", "2")])
async def test_a_window_sees_its_own_question_in_full_and_only_the_number_of_the_others(
    options: tuple[str, ...],
) -> None:
    """With several workers, one of them holds the session, and the others forward requests."""
    async with windows(*options) as (first, second):
        asking = await first.call("execute_tool", **BOOK)
        [question] = asking["structuredContent"]["pending_on_server"]["elicitations_for_server"]
        for _ in range(3):
            seen = waiting(await second.call("list_timers"))
            assert (seen["elicitations"], "1 of another conversation" in seen["more"]["elicitations"]) == ([], True)
            own = waiting(await first.call("list_timers"))
            assert [entry["requestId"] for entry in own["elicitations"]] == [question["requestId"]]


async def test_a_window_with_a_closed_connection_still_sees_its_own_question() -> None:
    async with windows() as (first, second):
        asking = await first.call("execute_tool", **BOOK)
        [question] = asking["structuredContent"]["pending_on_server"]["elicitations_for_server"]
        async with aiohttp.ClientSession() as pool:
            await first.endpoint.http.close()
            first.endpoint.http = pool
            own = waiting(await first.call("list_timers"))
            assert [entry["requestId"] for entry in own["elicitations"]] == [question["requestId"]]
            assert waiting(await second.call("list_timers"))["elicitations"] == []
