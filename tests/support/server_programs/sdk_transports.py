"""The transports of a server program that is made with the SDK.

`python PROGRAM` speaks stdio; `python PROGRAM http` serves 127.0.0.1 and prints its port.
"""

import asyncio
import socket
import sys
from typing import Any

import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server


def serve(server: Server[Any]) -> None:
    """Serve until the input ends or the process is stopped. The first argument of the program is the transport."""
    if sys.argv[1:] == ["http"]:
        _serve_http(server)
    else:
        asyncio.run(_serve_stdio(server))


async def _serve_stdio(server: Server[Any]) -> None:
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _serve_http(server: Server[Any]) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        print(listening.getsockname()[1], flush=True)
        config = uvicorn.Config(server.streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
        uvicorn.Server(config).run(sockets=[listening])
