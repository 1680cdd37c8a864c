"""Version 2 of the Python SDK as a client of emceepee. Second argument: how it negotiates the protocol version."""

import asyncio
import sys

from lines import PLACE, calls, say
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client


async def main() -> None:
    steps: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    place = PLACE["url"] if "url" in PLACE else stdio_client(StdioServerParameters(**PLACE))
    async with Client(place, mode=sys.argv[2]) as client:
        tools = (await client.list_tools()).tools
        say({"version": client.protocol_version, "tools": [tool.name for tool in tools]})
        async for tool, arguments in calls():
            steps.clear()
            result = await client.call_tool(tool, arguments, progress_callback=note)
            say(result.model_dump(mode="json", by_alias=True, exclude_none=True) | {"steps": steps})


if __name__ == "__main__":
    asyncio.run(main())
