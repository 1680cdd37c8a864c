"""The SDK's server object, for every method that is not the hot path: handshake, discovery, lists, ping."""

from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server

from emceepee import __version__
from emceepee.tools.catalogue import TOOLS

INSTRUCTIONS = (
    "emceepee is a proxy for MCP servers. list_servers shows what is connected, add_server connects more; "
    "list_tools and execute_tool use their tools, list_resources and read_resource their resources, list_prompts and "
    "get_prompt their prompts."
)


def build_kernel() -> Server[Any]:
    """One for the whole process; it keeps nothing of any caller."""
    tools = [types.Tool(name=tool.name, description=tool.description, input_schema=tool.input_schema) for tool in TOOLS]
    listed = types.ListToolsResult(tools=tools)

    async def list_tools(
        ctx: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return listed

    kernel: Server[Any] = Server(
        "emceepee", version=__version__, title="emceepee", instructions=INSTRUCTIONS, on_list_tools=list_tools
    )
    kernel.middleware.clear()  # the SDK's own tracing: emceepee has its spans
    return kernel
