"""A backend of the 2026-07-28 era whose tools ask before they answer.

`python -m support.server_programs.modern_server` speaks stdio; with `http` it serves 127.0.0.1 and prints its port.
"""

import json
from typing import Any

import mcp_types as types
from mcp.server import ServerRequestContext
from mcp.server.lowlevel import Server

from support.server_programs.sdk_transports import serve

TRIES = 3  # how often `try_again` asks to be tried again before it answers
Context = ServerRequestContext[Any]
Reply = types.CallToolResult | types.InputRequiredResult


def form(message: str, name: str) -> types.ElicitRequest:
    schema = {"type": "object", "properties": {name: {"type": "string"}}, "required": [name]}
    return types.ElicitRequest(params=types.ElicitRequestFormParams(message=message, requested_schema=schema))


def wish(text: str) -> types.CreateMessageRequest:
    message = types.SamplingMessage(role="user", content=types.TextContent(type="text", text=text))
    return types.CreateMessageRequest(params=types.CreateMessageRequestParams(messages=[message], max_tokens=20))


def said(**facts: Any) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(type="text", text=json.dumps(facts))])


def answers(params: types.CallToolRequestParams) -> dict[str, Any]:
    """Return the client's answers in plain words."""
    found: dict[str, Any] = {}
    for key, given in (params.input_responses or {}).items():
        if isinstance(given, types.ElicitResult):
            found[key] = given.content if given.action == "accept" else given.action
        elif isinstance(given, types.CreateMessageResult) and isinstance(given.content, types.TextContent):
            found[key] = given.content.text
    return found


async def ask_once(params: types.CallToolRequestParams) -> Reply:
    if params.input_responses is None:
        return types.InputRequiredResult(input_requests={"who": form("Who are you?", "name")}, request_state="once")
    return said(answers=answers(params), state=params.request_state, arguments=params.arguments)


async def ask_twice(params: types.CallToolRequestParams) -> Reply:
    known = json.loads(params.request_state or "{}") | answers(params)
    for key, message in (("city", "Which city?"), ("street", "Which street?")):
        if key not in known:
            state = json.dumps(known)
            return types.InputRequiredResult(input_requests={key: form(message, key)}, request_state=state)
    return said(**known)


async def ask_three(params: types.CallToolRequestParams) -> Reply:
    if params.input_responses is None:
        questions = {
            "from": form("From where?", "place"),
            "poem": wish("Write a line."),
            "to": form("Where to?", "place"),
        }
        return types.InputRequiredResult(input_requests=questions)
    return said(**answers(params))


async def try_again(params: types.CallToolRequestParams) -> Reply:
    tried = int(params.request_state or 0)
    return types.InputRequiredResult(request_state=str(tried + 1)) if tried < TRIES else said(tried=tried)


TOOLS = {tool.__name__: tool for tool in (ask_once, ask_twice, ask_three, try_again)}


async def list_tools(ctx: Context, params: types.PaginatedRequestParams | None) -> types.ListToolsResult:
    return types.ListToolsResult(tools=[types.Tool(name=name, input_schema={"type": "object"}) for name in TOOLS])


async def call_tool(ctx: Context, params: types.CallToolRequestParams) -> Reply:
    return await TOOLS[params.name](params)


def build() -> Server[Any]:
    return Server("modern", version="1", on_list_tools=list_tools, on_call_tool=call_tool)


if __name__ == "__main__":
    serve(build())
