"""A server of both eras whose tool asks in the manner of the handshake era only, on stdio or (`http`) a free port."""

import socket
import sys

import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

server = MCPServer("back-channel")


class Name(BaseModel):
    name: str


@server.tool()
async def ask(ctx: Context) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("Your name?", Name)
    return answer.action


@server.tool()
def echo(text: str) -> str:
    """Say it again."""
    return text


if sys.argv[1:] == ["http"]:
    listener = socket.create_server(("127.0.0.1", 0))
    print(listener.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(server.streamable_http_app(), log_level="error")).run(sockets=[listener])
else:
    server.run("stdio")
