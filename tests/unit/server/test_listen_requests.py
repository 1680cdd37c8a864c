"""A caller of 2026-07-28 receives the notifications that it subscribed to, on the stream of its subscription."""

import asyncio
from collections.abc import Callable

import msgspec
import pytest
from mcp_types import methods

from emceepee.server.eras import ModernEra
from emceepee.server.listen_requests import (
    LISTEN,
    PROMPTS_CHANGED,
    TOOLS_CHANGED,
    ListChange,
    end_listens,
    listen,
    resource_updated,
)
from emceepee.server.params import Wanted
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_rpc import Request
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import settle

STAMP = {"io.modelcontextprotocol/subscriptionId": 7}


class Source:
    """A source of changes that the test triggers."""

    offered = frozenset({TOOLS_CHANGED, PROMPTS_CHANGED, resource_updated("a://b"), resource_updated("a://c")})

    def __init__(self) -> None:
        self.listeners: list[Callable[[ListChange], None]] = []

    def subscribe(self, listener: Callable[[ListChange], None]) -> Callable[[], None]:
        self.listeners.append(listener)
        return lambda: self.listeners.remove(listener)

    def tell(self, change: ListChange) -> None:
        for listener in self.listeners:
            listener(change)


class Channel:
    """Records the messages that its caller receives."""

    is_gone = False

    def __init__(self) -> None:
        self.heard: list[JsonObject] = []

    def send(self, message: JsonObject) -> None:
        self.heard.append(message)


def a_listener() -> tuple[RequestContext, list[JsonObject]]:
    """Return a request, and the messages that its caller receives."""
    channel = Channel()
    return RequestContext(Request(7, LISTEN, None), channel=channel), channel.heard


async def test_a_listener_receives_the_list_of_its_subscriptions_and_then_only_their_notifications() -> None:
    source = Source()
    context, heard = a_listener()
    wanted = msgspec.convert({"toolsListChanged": True, "resourceSubscriptions": ["a://b"]}, Wanted)
    stream = asyncio.ensure_future(listen(source, wanted, context))
    await settle()
    for change in (TOOLS_CHANGED, PROMPTS_CHANGED, resource_updated("a://b"), resource_updated("a://c")):
        source.tell(change)
    assert [(message["method"], message["params"]) for message in heard] == [
        (
            "notifications/subscriptions/acknowledged",
            {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["a://b"]}, "_meta": STAMP},
        ),
        ("notifications/tools/list_changed", {"_meta": STAMP}),
        ("notifications/resources/updated", {"uri": "a://b", "_meta": STAMP}),
    ]
    stream.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stream
    assert source.listeners == []


async def test_a_listener_is_promised_only_subscriptions_that_can_occur() -> None:
    """The acknowledgment omits a list that never changes and an unknown resource."""
    wishes = {"toolsListChanged": False, "resourcesListChanged": True, "resourceSubscriptions": ["file:///no", "a://c"]}
    context, heard = a_listener()
    stream = asyncio.ensure_future(listen(Source(), msgspec.convert(wishes, Wanted), context))
    await settle()
    assert heard[0]["params"]["notifications"] == {"resourceSubscriptions": ["a://c"]}
    end_listens([context])
    async with asyncio.timeout(5):
        await stream


async def test_an_ended_listener_gets_a_result_and_no_further_notifications() -> None:
    source = Source()
    context, heard = a_listener()
    wanted = msgspec.convert({"toolsListChanged": True}, Wanted)
    stream = asyncio.ensure_future(listen(source, wanted, context))
    await settle()
    end_listens([context])
    async with asyncio.timeout(5):
        result = await stream
    assert (result, source.listeners, len(heard)) == ({"_meta": STAMP}, [], 1)
    whole = ModernEra(ProtocolMethods()).complete(result)
    assert methods.serialize_server_result("subscriptions/listen", "2026-07-28", whole) == whole
