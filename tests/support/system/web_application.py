"""An aiohttp application on a free port."""

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

SHUTDOWN_SECONDS = 0.1  # aiohttp gives open requests a minute


@asynccontextmanager
async def running_application(
    application: web.Application, *, tls: ssl.SSLContext | None = None, cancels_handlers: bool = False
) -> AsyncIterator[int]:
    """Serve the application on 127.0.0.1. The value is its port.

    `cancels_handlers`: cancel the handler of a request as soon as its connection is closed.
    """
    runner = web.AppRunner(
        application, access_log=None, shutdown_timeout=SHUTDOWN_SECONDS, handler_cancellation=cancels_handlers
    )
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()
