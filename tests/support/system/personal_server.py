"""A server that wants tokens and shows each person other lists, resources, and messages.

A logged-in person is a number here. `seen` lists each request with the person of its token.
"""

import asyncio
import itertools
import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from support.system.authorization_server import AuthorizationServer

NOTE = "note://own"


@dataclass(frozen=True)
class Seen:
    """One request: whose token came with it, over which connection, in which session."""

    login: int
    token: str
    peer: tuple[str, int]
    session_id: str | None
    method: str


@dataclass
class PersonalServer(AuthorizationServer):
    """2025-11-25, with sessions. `push` tells something to the streams of one of them."""

    seen: list[Seen] = field(default_factory=list)
    owners: dict[str, int] = field(default_factory=dict)  # of session ids
    _streams: dict[int, list[asyncio.Queue[bytes]]] = field(default_factory=lambda: defaultdict(list))
    _sessions: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    @property
    def logins(self) -> list[int]:
        """In the order in which they were first seen."""
        return list(dict.fromkeys(each.login for each in self.seen))

    def of(self, login: int, what: str) -> set[Any]:
        return {getattr(each, what) for each in self.seen if each.login == login}

    def has_stream(self, login: int) -> bool:
        return bool(self._streams[login])

    def push(self, login: int, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        for stream in self._streams[login]:
            stream.put_nowait(b"event: message\ndata: %s\n\n" % json.dumps(message).encode())

    async def mcp(self, request: web.Request) -> web.StreamResponse:
        token = request.headers.get("authorization", "").partition(" ")[2]
        if token not in self.valid:
            return self.not_let_in(401, "")
        assert request.transport is not None
        message = await request.json() if request.method == "POST" else {"method": request.method}
        login, session_id = self._logins[token], request.headers.get("mcp-session-id")
        peer = request.transport.get_extra_info("peername")
        self.seen.append(Seen(login, token, peer, session_id, message["method"]))
        if request.method == "GET":
            return await self._stream(request, login)
        if request.method != "POST" or "id" not in message:
            return web.Response(status=202)
        headers = {}
        if message["method"] == "initialize":
            headers["mcp-session-id"] = f"session-{next(self._sessions)}"
            self.owners[headers["mcp-session-id"]] = login
        answer = self._answer(message["method"], login)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], **answer}, headers=headers)

    def _answer(self, method: str, login: int) -> dict[str, Any]:
        known: dict[str, dict[str, Any]] = {
            "initialize": {
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}},
                "serverInfo": {"name": "personal", "version": "1"},
                "instructions": f"for {login}",
            },
            "tools/list": {"tools": [{"name": f"tool-of-{login}", "inputSchema": {"type": "object"}}]},
            "tools/call": {"content": [{"type": "text", "text": f"for {login}"}]},
            "resources/list": {"resources": [{"uri": NOTE, "name": f"note of {login}"}]},
            "resources/read": {"contents": [{"uri": NOTE, "text": f"note of {login}"}]},
            "resources/subscribe": {},
            "ping": {},
        }
        return (
            {"result": known[method]} if method in known else {"error": {"code": -32601, "message": "no such method"}}
        )

    async def _stream(self, request: web.Request, login: int) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        said: asyncio.Queue[bytes] = asyncio.Queue()
        self._streams[login].append(said)
        try:
            while True:
                await response.write(await said.get())
        finally:
            self._streams[login].remove(said)
