"""LangChain's adapters, which open a connection for each call. Shown: the message that a model would get."""

import asyncio

from langchain_mcp_adapters.client import MultiServerMCPClient
from lines import PLACE, calls, say


async def main() -> None:
    transport = "streamable_http" if "url" in PLACE else "stdio"
    client = MultiServerMCPClient({"emceepee": {"transport": transport, **PLACE}})
    tools = {tool.name: tool for tool in await client.get_tools()}
    say({"tools": list(tools)})
    async for tool, arguments in calls():
        call = {"type": "tool_call", "id": "1", "name": tool, "args": arguments}
        message = await tools[tool].ainvoke(call)
        say(message.content)


if __name__ == "__main__":
    asyncio.run(main())
