"""FastMCP as a client of emceepee over HTTP; runs in an environment of its own.

Argument: the address. Standard output: what was found, as one JSON object.
"""

import asyncio
import json
import sys

from fastmcp import Client


async def main() -> None:
    steps: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with Client(sys.argv[1], progress_handler=note) as client:
        tools = await client.list_tools()
        wait = {"server": "demo", "tool": "dig", "args": {"seconds": 0.2, "steps": 4}}
        dug = await client.call_tool("execute_tool", wait)
        found = {"tools": len(tools), "steps": steps, "said": dug.content[0].text}
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
