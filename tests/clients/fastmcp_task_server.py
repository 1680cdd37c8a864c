"""A FastMCP server that runs its tools as tasks of its own, by the tasks extension of 2026-07-28.

`python fastmcp_task_server.py PORT FOLDER [REDIS]` serves 127.0.0.1. What its tools do is seen, and directed, by files
in the folder: each run of `dig` adds a line to `NAME.ran`, and ends when `NAME.go` is there.
"""

import asyncio
import sys
from datetime import timedelta
from pathlib import Path

from fastmcp import Context, FastMCP
from fastmcp_tasks import TasksExtension
from mcp_types import ElicitRequest, ElicitRequestFormParams, InputRequiredResult

PORT, FOLDER = int(sys.argv[1]), Path(sys.argv[2])
LOOK_SECONDS = 0.02


async def _told_to_end(name: str) -> None:
    while not (FOLDER / f"{name}.go").exists():  # noqa: ASYNC110 - another process makes the file
        await asyncio.sleep(LOOK_SECONDS)  # a poll: the task lasts until the file exists


server = FastMCP("digger")
server.add_extension(
    TasksExtension(
        url=sys.argv[3] if len(sys.argv) > 3 else "memory://",
        redelivery_timeout=timedelta(seconds=1),  # after which a restarted server goes on with what it was at
    )
)


@server.tool(task=True)
async def dig(name: str) -> str:
    """Dig until the file NAME.go is there."""
    with (FOLDER / f"{name}.ran").open("a", encoding="utf-8") as ran:
        ran.write("once\n")
    await _told_to_end(name)
    return f"dug {name}"


@server.tool(task=True)
async def ask_and_dig(name: str, ctx: Context) -> str | InputRequiredResult:
    """Ask where to dig, then dig as `dig` does. It runs again from the start once it has the answer."""
    answer = (ctx.input_responses or {}).get("where")
    if answer is None:
        schema = {"type": "object", "properties": {"place": {"type": "string"}}, "required": ["place"]}
        params = ElicitRequestFormParams(message="Where shall I dig?", requested_schema=schema)
        return InputRequiredResult(input_requests={"where": ElicitRequest(params=params)})
    place = (answer.content or {}).get("place", answer.action)
    await _told_to_end(name)
    return f"dug {name} at {place}"


@server.tool(task=True)
async def quick(name: str) -> str:
    """Done at once."""
    return f"quick {name}"


@server.tool(task=True)
async def broken() -> str:
    """Fail."""
    raise ValueError("the spade broke")


if __name__ == "__main__":
    server.run(transport="http", host="127.0.0.1", port=PORT, show_banner=False, log_level="ERROR")
