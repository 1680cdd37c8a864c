"""Recordings made in few words, and a client that speaks to a replayed one without a process."""

import asyncio
import json
from typing import Any

from emceepee.clock import Clock, SystemClock
from emceepee.replay.recording import Recording
from emceepee.replay.recording_reader import parse_recording
from emceepee.replay.replayed_conversation import ReplayedConversation
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import settle

HEADER = {"emceepee_recording": 1, "server": "shop", "target": "stdio://shop", "recorded_at": "", "recorded_by": ""}
HELLO = {
    "protocolVersion": "2025-11-25",
    "serverInfo": {"name": "shop", "version": "3"},
    "capabilities": {"tools": {"listChanged": True}, "logging": {}},
    "instructions": "Buy something.",
}
OPENED = {"at": 0, "type": "opened", "server": HELLO}
MODERN_META = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
BOUND = 10.0


def lines(*entries: JsonObject, header: JsonObject | None = None) -> list[bytes]:
    return [json.dumps(entry).encode() for entry in (header or HEADER, OPENED, *entries)]


def recording(*entries: JsonObject) -> Recording:
    return parse_recording(lines(*entries))


def call(number: int, at: float, tool: str, /, **arguments: Any) -> JsonObject:
    params = {"name": tool, "arguments": arguments}
    return {"at": at, "type": "request", "id": number, "method": "tools/call", "params": params}


def result(number: int, at: float, text: str) -> JsonObject:
    return {"at": at, "type": "result", "id": number, "result": {"content": [{"type": "text", "text": text}]}}


def notice(number: int | None, at: float, method: str, /, **params: Any) -> JsonObject:
    return {"at": at, "type": "notification", "during": number, "method": f"notifications/{method}", "params": params}


def question(number: int, at: float, key: str, message: str) -> JsonObject:
    params = {"message": message, "requestedSchema": {"type": "object", "properties": {}}}
    return {"at": at, "type": "question", "id": key, "during": number, "method": "elicitation/create", "params": params}


class ReplayClient:
    """`heard` is all that was said, in its order."""

    def __init__(self, played: Recording, *, is_modern: bool, clock: Clock | None = None) -> None:
        self._is_modern, self._count = is_modern, 0
        self.takes_questions = True
        self.notes: list[str] = []
        self.heard: list[JsonObject] = []
        self.conversation = ReplayedConversation(
            played, clock or SystemClock(), is_instant=clock is None, says=self.notes.append
        )

    def send(self, message: JsonObject) -> None:
        """As the channel of the conversation."""
        self.heard.append(message)

    async def drain(self) -> None: ...

    def begin(self, method: str, params: JsonObject | None = None, /, **capabilities: Any) -> "asyncio.Task[None]":
        self._count += 1
        params = dict(params or {})
        if self._is_modern:
            params["_meta"] = {**MODERN_META, CAPABILITIES: capabilities, **params.get("_meta", {})}
        request = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        task = self.conversation.receive(request, self)
        assert task is not None
        return task

    async def ask(self, method: str, params: JsonObject | None = None, /, **capabilities: Any) -> JsonObject:
        """The whole response."""
        await asyncio.wait_for(self.begin(method, params, **capabilities), BOUND)
        return next(message for message in reversed(self.heard) if message.get("id") == self._count)

    async def call(self, tool: str, /, **arguments: Any) -> JsonObject:
        return await self.ask("tools/call", {"name": tool, "arguments": arguments})

    def receive(self, message: JsonObject) -> None:
        self.conversation.receive(message, self)

    async def initialize(self, **capabilities: Any) -> JsonObject:
        hello = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": {"name": "t"}}
        return dict((await self.ask("initialize", hello))["result"])

    def methods(self) -> list[str]:
        """Return the methods of messages that the server sent unasked."""
        return [message["method"] for message in self.heard if "method" in message]

    async def settle(self) -> None:
        await settle()
