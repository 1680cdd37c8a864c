"""Version 1 of the Python SDK as a client of emceepee."""

import asyncio
from typing import Any

from lines import PLACE, calls, say
from mcp import ClientSession, StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client


def streams() -> Any:
    if "url" in PLACE:
        return streamable_http_client(PLACE["url"])
    return stdio_client(StdioServerParameters(**PLACE))


async def main() -> None:
    steps: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with streams() as (read, write, *_), ClientSession(read, write) as session:
        hello = await session.initialize()
        tools = (await session.list_tools()).tools
        say({"version": hello.protocolVersion, "tools": [tool.name for tool in tools]})
        async for tool, arguments in calls():
            steps.clear()
            result = await session.call_tool(tool, arguments, progress_callback=note)
            say(result.model_dump(mode="json", by_alias=True, exclude_none=True) | {"steps": steps})


if __name__ == "__main__":
    asyncio.run(main())
