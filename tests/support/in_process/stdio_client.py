"""One conversation with emceepee, line by line and without a process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.stdio.stdio_conversation import StdioConversation
from emceepee.telemetry.journal import SpanObserver
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject
from emceepee.wire.line_splitter import TooLongLine
from support.backends.scripted_backend import ScriptedBackend
from support.sessions.request_contexts import ALL_TOOLS
from support.sessions.scene import Scene, a_scene

ENVELOPE: JsonObject = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class StdioClient:
    """One conversation: say something, then look at what was heard."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.backend = scene, scene.backends["demo"]
        self.heard: list[Any] = []
        self.meta: JsonObject | None = None  # what a caller of 2026-07-28 says in every request
        self._arrived = asyncio.Event()
        self.conversation = StdioConversation(ProtocolMethods(), scene.session, self._send, ALL_TOOLS)

    def _send(self, message: JsonObject | list[JsonObject]) -> None:
        self.heard.append(message)
        self._arrived.set()

    async def say(self, message: Any) -> None:
        line = message if isinstance(message, bytes | TooLongLine) else encode(message)
        async with asyncio.timeout(5):
            await self.conversation.receive(line)

    async def ask(self, method: str, key: Any = 1, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": key, "method": method}
        if self.meta is not None:
            params["_meta"] = self.meta
        await self.say(message | {"params": params} if params else message)

    async def call(self, tool: str, key: Any = 1, /, **arguments: Any) -> None:
        await self.ask("tools/call", key, name=tool, arguments=arguments)

    async def answer(self, key: Any, **result: Any) -> None:
        """To something that emceepee asked."""
        await self.say({"jsonrpc": "2.0", "id": key, "result": result})

    async def tell(self, method: str, **params: Any) -> None:
        await self.say({"jsonrpc": "2.0", "method": method, "params": params})

    async def open(self, version: str = "2025-11-25", *, name: str = "t", **capabilities: Any) -> None:
        if version == "2026-07-28":
            self.meta = ENVELOPE | {"io.modelcontextprotocol/clientCapabilities": capabilities}
            return
        client = {"name": name, "version": "1"}
        await self.ask("initialize", "hello", protocolVersion=version, capabilities=capabilities, clientInfo=client)
        await self.tell("notifications/initialized")
        assert [message["id"] for message in self.heard] == ["hello"]
        self.heard.clear()

    async def next(self) -> Any:
        """The next thing heard."""
        async with asyncio.timeout(5):
            while not self.heard:
                self._arrived.clear()
                await self._arrived.wait()
        return self.heard.pop(0)


@asynccontextmanager
async def a_stdio_client(
    *, is_awake: bool = True, observers: tuple[SpanObserver, ...] = ()
) -> AsyncIterator[StdioClient]:
    async with a_scene(demo=ScriptedBackend(), is_awake=is_awake, observers=observers) as scene:
        client = StdioClient(scene)
        try:
            yield client
        finally:
            async with asyncio.timeout(5):
                await client.conversation.close()
