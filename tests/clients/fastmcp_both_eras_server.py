"""A FastMCP server that needs both eras: a tool that asks as before 2026-07-28, and one that runs only as a task.

`python fastmcp_both_eras_server.py PORT` serves 127.0.0.1.
"""

import sys

from fastmcp import Context, FastMCP
from fastmcp.utilities.tasks import TaskConfig
from fastmcp_tasks import TasksExtension

server = FastMCP("both")
server.add_extension(TasksExtension(url="memory://"))


@server.tool
async def ask(ctx: Context) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("Your name?", response_type=str)
    return f"{answer.action} {getattr(answer, 'data', None)}"


@server.tool(task=TaskConfig(mode="required"))
async def dig(name: str) -> str:
    """Dig, in the background only."""
    return f"dug {name}"


if __name__ == "__main__":
    server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="ERROR")
