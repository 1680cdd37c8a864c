"""The OpenAI Agents SDK with a model that the test plays: it says what it is shown, and calls what the test wants.

Second argument: "structured" if the model is to get structured content where there is some.
"""

import asyncio
import itertools
import json
import sys
from collections.abc import AsyncIterator
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from lines import PLACE, next_call, say
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

TURNS = 100
SECONDS = 60.0


class PlayedModel(Model):
    def __init__(self) -> None:
        self._ids = itertools.count(1)

    async def get_response(
        self,
        system_instructions: str | None,
        input: Any,  # noqa: A002 - it is passed by this name
        model_settings: Any,
        tools: list[Any],
        *rest: Any,
        **more: Any,
    ) -> ModelResponse:
        last = {} if isinstance(input, str) else input[-1]
        say(last["output"] if "output" in last else {"tools": [tool.name for tool in tools]})
        key = f"call-{next(self._ids)}"
        call = await next_call()
        return ModelResponse(output=[_calling(key, *call) if call else _done(key)], usage=Usage(), response_id=None)

    def stream_response(self, *rest: Any, **more: Any) -> AsyncIterator[Any]:
        raise NotImplementedError  # the interface asks for it, and nobody here streams


def _calling(key: str, tool: str, arguments: dict[str, Any]) -> ResponseFunctionToolCall:
    return ResponseFunctionToolCall(type="function_call", call_id=key, name=tool, arguments=json.dumps(arguments))


def _done(key: str) -> ResponseOutputMessage:
    text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
    return ResponseOutputMessage(type="message", id=key, role="assistant", status="completed", content=[text])


async def main() -> None:
    set_tracing_disabled(True)
    kind = MCPServerStreamableHttp if "url" in PLACE else MCPServerStdio
    structured = sys.argv[2] == "structured"
    async with kind(PLACE, use_structured_content=structured, client_session_timeout_seconds=SECONDS) as server:
        agent = Agent(name="agent", model=PlayedModel(), mcp_servers=[server])
        await Runner.run(agent, "Book a table.", max_turns=TURNS)


if __name__ == "__main__":
    asyncio.run(main())
