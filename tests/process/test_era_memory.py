"""A second connection starts in the remembered era of the first and detects a change."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from emceepee.backends.dialer import Dialer
from emceepee.backends.era_memory import KEPT_SECONDS
from emceepee.backends.link import Link
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import FakeClock
from support.system.web_application import running_application


class TwoEras:
    """A server with a configurable era; it records its requests."""

    def __init__(self, *, is_modern: bool) -> None:
        self.is_modern = is_modern
        self.asked: list[str] = []
        self.url = ""

    def take_asked(self) -> list[str]:
        asked, self.asked = self.asked, []
        return asked

    async def serve(self, request: web.Request) -> web.Response:
        if request.method != "POST":
            return web.Response(status=405)
        message = json.loads(await request.read())
        self.asked.append(message["method"])
        if "id" not in message:
            return web.Response(status=202)
        result: JsonObject | None = None
        if message["method"] == "server/discover" and self.is_modern:
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete"}
        elif message["method"] == "initialize" and not self.is_modern:
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "x", "version": "1"}}
        if result is None:
            error = {"code": -32601, "message": "Method not found"}
            return web.json_response({"jsonrpc": "2.0", "id": message["id"], "error": error}, status=400)
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})


@asynccontextmanager
async def a_server(*, is_modern: bool) -> AsyncIterator[TwoEras]:
    server = TwoEras(is_modern=is_modern)
    app = web.Application()
    app.router.add_route("*", "/mcp", server.serve)
    async with running_application(app) as port:
        server.url = f"http://127.0.0.1:{port}/mcp"
        yield server


@asynccontextmanager
async def a_link(dialer: Dialer, server: TwoEras) -> AsyncIterator[Link]:
    link = await dialer.dial(BackendSpec(name="x", target=HttpTarget(url=server.url)), ScriptedListener())
    try:
        yield link
    finally:
        await link.close()


async def test_the_second_connection_to_a_server_does_not_probe_the_era() -> None:
    async with a_server(is_modern=False) as server, Dialer.running(FakeClock(), Limits(line_bytes=1 << 20)) as dialer:
        async with a_link(dialer, server):
            assert server.take_asked() == ["server/discover", "initialize", "notifications/initialized"]
        async with a_link(dialer, server):
            assert server.take_asked() == ["initialize", "notifications/initialized"]


async def test_a_server_that_changed_its_era_is_connected_in_the_new_one() -> None:
    async with a_server(is_modern=False) as server, Dialer.running(FakeClock(), Limits(line_bytes=1 << 20)) as dialer:
        for is_modern in (False, True, False):
            server.is_modern = is_modern
            async with a_link(dialer, server) as link:
                assert link.facts.is_modern == is_modern
            async with a_link(dialer, server) as link:
                assert link.facts.is_modern == is_modern


async def test_the_era_of_a_server_is_probed_again_after_a_while() -> None:
    clock = FakeClock()
    async with a_server(is_modern=False) as server, Dialer.running(clock, Limits(line_bytes=1 << 20)) as dialer:
        async with a_link(dialer, server), a_link(dialer, server):
            server.take_asked()
        await clock.advance(KEPT_SECONDS)
        async with a_link(dialer, server):
            assert server.take_asked()[0] == "server/discover"
