"""Answers of extreme size, and arguments that are too large to store."""

import io
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web

from support.backends.http_backend import HELLO
from support.callers.emceepee_process import configured
from support.callers.http_process import http_process
from support.faults.strain import WAIT_SECONDS, strain_on
from support.server_programs.stdio_entries import stdio_server
from support.system.web_application import running_application

MANY_TOOLS = json.dumps({"tools": [{"name": f"tool{n}", "inputSchema": {"type": "object"}} for n in range(200_000)]})
MANY_VALUES = '{"content":[],"structuredContent":{"values":[' + "[]," * 4_000_000 + "[]]}}"
ODD_VALUES = (
    '{"content":[],"structuredContent":{"values":[NaN,'
    + ",".join(f'{{"row":{n},"half":{n / 2},"text":"some text"}}' for n in range(150_000))
    + "]}}"
)


async def serve(request: web.Request) -> web.StreamResponse:
    if request.method != "POST":
        return web.Response(status=405)
    message: dict[str, Any] = await request.json()
    if "id" not in message:
        return web.Response(status=202)
    match message["method"]:
        case "initialize":
            result = json.dumps(HELLO)
        case "tools/list":
            result = MANY_TOOLS
        case "tools/call":
            result = {"values": MANY_VALUES, "odd": ODD_VALUES}[message["params"]["name"]]
        case _:
            return web.Response(status=400)
    body = f'{{"jsonrpc":"2.0","id":{message["id"]},"result":{result}}}'.encode()
    response = web.StreamResponse(headers={"content-type": "application/json"})
    await response.prepare(request)
    await response.write(body)
    return response


@asynccontextmanager
async def immense_backend() -> AsyncIterator[str]:
    application = web.Application()
    application.router.add_route("*", "/mcp", serve)
    async with running_application(application) as port:
        yield f"http://127.0.0.1:{port}/mcp"


async def test_an_immense_list_is_an_error_of_its_server_and_the_others_are_listed() -> None:
    async with (
        immense_backend() as url,
        http_process(env=configured({"immense": {"url": url}, "good": stdio_server()})) as endpoint,
    ):
        caller = await endpoint.caller()
        await caller.value("list_tools", server="good")
        async with strain_on(endpoint) as strain:
            listed = await caller.value("list_tools", detail="names")
        assert "echo" in [tool["name"] for tool in listed["tools"]]
        assert "tools/list has more than 50000 entries" in listed["errors"][0]["message"]
        strain.check()


@pytest.mark.parametrize("tool", ["values", "odd"])
async def test_an_answer_with_many_values_costs_other_callers_little(tool: str) -> None:
    async with immense_backend() as url, http_process(env=configured({"immense": {"url": url}})) as endpoint:
        caller = await endpoint.caller()
        async with strain_on(endpoint) as strain:
            result = await caller.call("execute_tool", server="immense", tool=tool, timeout_ms=20_000)
        if tool == "values":
            assert "more than 1000000 values" in result["structuredContent"]["error"]["message"]
            strain.check()
        else:
            assert result["structuredContent"]["values"][0] is None
            assert strain.longest_wait < WAIT_SECONDS  # memory is what such an answer takes


async def test_the_stored_part_of_very_large_arguments_is_small() -> None:
    async with http_process(env=configured({"good": stdio_server()})) as endpoint:
        caller = await endpoint.caller()
        async with strain_on(endpoint) as strain:
            for number in range(40):
                arguments = {"server": "good", "uri": "x://" + "u" * 3_000_000}
                call = caller.message("tools/call", {"name": "read_resource", "arguments": arguments}, number)
                headers = caller.headers | {"content-type": "application/json"}
                body = io.BytesIO(json.dumps(call).encode())
                async with endpoint.http.post(endpoint.url, data=body, headers=headers) as response:
                    assert response.status == 200
                    await response.read()
        strain.check()
