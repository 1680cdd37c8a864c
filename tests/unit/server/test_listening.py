"""A caller of 2026-07-28 hears of what it named, on the stream that it opened for that, and of nothing else."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest

from emceepee.json_types import JsonObject
from emceepee.server.listening import PROMPTS_CHANGED, TOOLS_CHANGED, Change, listen, resource_updated
from emceepee.server.params import Wanted
from support.fakes.clock import settle


class Source:
    """Changes that the test makes."""

    def __init__(self) -> None:
        self.listeners: list[Callable[[Change], None]] = []

    def subscribe(self, listener: Callable[[Change], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def tell(self, change: Change) -> None:
        for listener in self.listeners:
            listener(change)


async def test_it_is_told_what_it_will_hear_of_and_then_hears_of_that_alone() -> None:
    source = Source()
    heard: list[JsonObject] = []
    wanted = msgspec.convert({"toolsListChanged": True, "resourceSubscriptions": ["a://b"]}, Wanted)
    stream = asyncio.ensure_future(listen(source, wanted, 7, heard.append))
    await settle()
    for change in (TOOLS_CHANGED, PROMPTS_CHANGED, resource_updated("a://b"), resource_updated("a://c")):
        source.tell(change)
    stamp = {"io.modelcontextprotocol/subscriptionId": 7}
    assert [(message["method"], message["params"]) for message in heard] == [
        (
            "notifications/subscriptions/acknowledged",
            {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["a://b"]}, "_meta": stamp},
        ),
        ("notifications/tools/list_changed", {"_meta": stamp}),
        ("notifications/resources/updated", {"uri": "a://b", "_meta": stamp}),
    ]
    stream.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stream
    assert source.listeners == []
