"""emceepee as the client under the conformance suite: the suite's server is a backend, and every request goes to it
through emceepee's tools.

The suite starts this program with the address of its server as the last argument. A running emceepee is named in
EMCEEPEE_URL.
"""

import asyncio
import json
import os
import sys
from typing import Any

import aiohttp

from support.callers.http_process import HttpCaller, HttpProcess

BACKEND = "suite"
SAMPLES: dict[str, Any] = {"number": 5, "integer": 5, "boolean": True, "array": [], "object": {}}


def sample(schema: dict[str, Any]) -> dict[str, Any]:
    """The barest arguments that fit."""
    properties: dict[str, dict[str, Any]] = schema.get("properties", {})
    wanted = schema.get("required", list(properties))
    return {name: SAMPLES.get(str(properties.get(name, {}).get("type")), "text") for name in wanted}


class Driver:
    """One session of emceepee with one backend."""

    def __init__(self, caller: HttpCaller) -> None:
        self._caller = caller

    async def run(self, url: str, context: dict[str, Any]) -> None:
        await self._caller.value("add_server", name=BACKEND, url=url)
        tools = (await self._caller.value("list_tools", server=f"^{BACKEND}$"))["tools"]
        calls = context.get("toolCalls") or [_call_of(tool, tools) for tool in tools]
        await asyncio.gather(*(self._execute(call["name"], call["arguments"]) for call in calls))
        await self._read_everything()

    async def _execute(self, tool: str, arguments: dict[str, Any]) -> None:
        """Call the tool, and give each question a minimal answer until the call has a result."""
        result = await self._caller.call("execute_tool", server=BACKEND, tool=tool, args=arguments)
        while task := (result.get("structuredContent") or {}).get("proxy_task"):
            await self._answer_questions()
            result = await self._caller.call("get_task_result", task_id=task["task_id"], timeout_ms=500)
            if (result.get("structuredContent") or {}).get("error", {}).get("code") == "TOOL_ERR_TIMEOUT":
                result = {"structuredContent": {"proxy_task": task}}

    async def _answer_questions(self) -> None:
        for question in (await self._caller.value("get_elicitations"))["requests"]:
            await self._caller.call(
                "respond_to_elicitation", request_id=question["requestId"], action="accept", content={}
            )
        for question in (await self._caller.value("get_sampling_requests"))["requests"]:
            answer = {"role": "assistant", "content": "text", "model": "none"}
            await self._caller.call("respond_to_sampling", request_id=question["requestId"], **answer)

    async def _read_everything(self) -> None:
        for resource in (await self._caller.value("list_resources"))["resources"]:
            await self._caller.call("read_resource", server=BACKEND, uri=resource["uri"])
        for prompt in (await self._caller.value("list_prompts"))["prompts"]:
            given = {item["name"]: "text" for item in prompt.get("arguments", [])}
            await self._caller.call("get_prompt", server=BACKEND, name=prompt["name"], arguments=given)


def _call_of(tool: dict[str, Any], tools: list[dict[str, Any]]) -> dict[str, Any]:
    """One tool of the suite takes another's schema, to see what is left of it."""
    arguments = sample(tool["inputSchema"])
    if tool["name"] == "json_schema_echo":
        (other,) = [one for one in tools if one is not tool]
        arguments = {"schema": other["inputSchema"]}
    return {"name": tool["name"], "arguments": arguments}


async def main() -> None:
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    async with aiohttp.ClientSession() as http:
        # The server's process belongs to the test, and is not needed here.
        caller = await HttpProcess(None, os.environ["EMCEEPEE_URL"], http).caller()
        try:
            await Driver(caller).run(sys.argv[-1], context)
        finally:
            await caller.call("remove_server", name=BACKEND)
            await caller.end()


if __name__ == "__main__":
    asyncio.run(main())
