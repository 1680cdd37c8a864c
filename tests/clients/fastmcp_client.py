"""FastMCP as a client of emceepee."""

import asyncio

from fastmcp import Client
from fastmcp.client.transports import StdioTransport
from lines import PLACE, calls, say


async def main() -> None:
    steps: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    place = PLACE["url"] if "url" in PLACE else StdioTransport(**PLACE)
    async with Client(place, progress_handler=note) as client:
        tools = await client.list_tools()
        say({"version": client.session.protocol_version, "tools": [tool.name for tool in tools]})
        async for tool, arguments in calls():
            steps.clear()
            result = await client.call_tool(tool, arguments, raise_on_error=False)
            content = [block.model_dump(mode="json", by_alias=True, exclude_none=True) for block in result.content]
            say({"content": content, "structuredContent": result.structured_content, "steps": steps})


if __name__ == "__main__":
    asyncio.run(main())
