"""Pydantic AI with a model that the test plays: it says what it is shown, and calls the tools that the test wants."""

import asyncio

from fastmcp.client.transports import StdioTransport
from lines import PLACE, next_call, say
from pydantic_ai import Agent, ModelMessage, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.function import AgentInfo, FunctionModel


async def think(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        say(last.model_response_str())
    else:
        say({"tools": [tool.name for tool in info.function_tools]})
    if (call := await next_call()) is None:
        return ModelResponse(parts=[TextPart("Done.")])
    tool, arguments = call
    return ModelResponse(parts=[ToolCallPart(tool, arguments)])


async def main() -> None:
    place = PLACE["url"] if "url" in PLACE else StdioTransport(**PLACE)
    agent = Agent(FunctionModel(think), toolsets=[MCPToolset(place)])
    await agent.run("Book a table.")


if __name__ == "__main__":
    asyncio.run(main())
