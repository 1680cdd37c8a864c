"""Version 1 of the Python SDK as a client of emceepee over HTTP; runs in an environment of its own.

Argument: the address. Standard output: what was found, as one JSON object.
"""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.streamable_http import streamablehttp_client


async def main() -> None:
    steps: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with (
        streamablehttp_client(sys.argv[1]) as (read, write, _),
        ClientSession(read, write) as session,
    ):
        hello = await session.initialize()
        tools = (await session.list_tools()).tools
        wait = {"server": "demo", "tool": "dig", "args": {"seconds": 0.2, "steps": 4}}
        dug = await session.call_tool("execute_tool", wait, progress_callback=note)
        found = {
            "version": hello.protocolVersion,
            "tools": len(tools),
            "steps": steps,
            "said": dug.content[0].text,
        }
    print(json.dumps(found))


if __name__ == "__main__":
    asyncio.run(main())
