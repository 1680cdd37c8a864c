"""HTTP servers that say who they are, and keep what they were sent: what stands behind a balancer under test."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from aiohttp import web


@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedRequest:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


Respond = Callable[[web.Request], Awaitable[web.StreamResponse]]


class Upstream:
    """`respond` is what it does with a request; requests for /readyz are answered, and not kept."""

    def __init__(self, name: str) -> None:
        self.name, self.address = name, ""
        self.received: list[ReceivedRequest] = []
        self.respond: Respond = self.say_name
        application = web.Application(client_max_size=8 << 20)
        application.router.add_route("*", "/readyz", self.say_name)
        application.router.add_route("*", "/{path:.*}", self._handle)
        self._runner = web.AppRunner(application, shutdown_timeout=0.1)

    async def start(self) -> None:
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.address = f"127.0.0.1:{self._runner.addresses[0][1]}"

    async def stop(self) -> None:
        """Nobody listens there any more."""
        await self._runner.cleanup()

    async def say_name(self, request: web.Request) -> web.Response:
        return web.Response(text=self.name)

    async def refuse(self, request: web.Request) -> web.Response:
        """As one that stops."""
        return web.Response(status=503, headers={"retry-after": "1"})

    async def hang_up(self, request: web.Request) -> web.Response:
        """As one that is killed."""
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): text for name, text in request.headers.items()}
        body = await request.read()
        self.received.append(ReceivedRequest(method=request.method, path=request.path, headers=headers, body=body))
        return await self.respond(request)


@asynccontextmanager
async def running_upstreams(*names: str) -> AsyncIterator[list[Upstream]]:
    upstreams = [Upstream(name) for name in names]
    await asyncio.gather(*(each.start() for each in upstreams))
    try:
        yield upstreams
    finally:
        await asyncio.gather(*(each.stop() for each in upstreams))
