"""Excessively nested JSON is an error for its own message only."""

import json
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

from support.callers.emceepee_process import configured
from support.callers.http_process import BOTH, HttpProcess, http_process
from support.server_programs import deep
from support.server_programs.stdio_entries import stdio_server
from support.sessions.replies import text_of

pytestmark = pytest.mark.asyncio(loop_scope="module")
# The interpreter's own limit is the last; what passes it when it is read may fail when it is written.
DEPTHS = (250, 960, 978, 982, 985, 988, 2000)


def deep_server(depth: int) -> dict[str, Any]:
    return {"command": sys.executable, "args": ["-S", "-E", deep.__file__], "env": {"DEPTH": str(depth)}}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[HttpProcess]:
    """One that has to live through everything here."""
    servers = {"good": stdio_server()} | {f"deep{depth}": deep_server(depth) for depth in DEPTHS}
    async with http_process(env=configured(servers)) as running:
        yield running


async def test_a_deeply_nested_schema_of_one_server_does_not_hide_tools_of_other_servers(endpoint: HttpProcess) -> None:
    caller = await endpoint.caller()
    listed = await caller.value("list_tools", server="good|deep985", detail="names")
    assert "echo" in [tool["name"] for tool in listed["tools"] if tool["server"] == "good"]
    assert [error["server"] for error in listed["errors"]] == ["deep985"]
    assert "deeper than 200 levels" in listed["errors"][0]["message"]


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("tool", ["result", "result_first", "error"])
async def test_a_deeply_nested_answer_is_an_error_of_its_call(depth: int, tool: str, endpoint: HttpProcess) -> None:
    caller = await endpoint.caller()
    error = await caller.error("execute_tool", server=f"deep{depth}", tool=tool, timeout_ms=20_000)
    assert "deeper than 200 levels" in error["message"]


@pytest.mark.parametrize("depth", DEPTHS)
async def test_deeply_nested_questions_and_notifications_are_dropped_without_harm(
    depth: int, endpoint: HttpProcess
) -> None:
    caller = await endpoint.caller()
    told = await caller.call("execute_tool", server=f"deep{depth}", tool="ask")
    assert text_of(told) == "ask"
    assert (await caller.value("get_elicitations"))["requests"] == []
    await caller.value("get_logs")
    await caller.value("get_notifications")
    await caller.value("list_servers")


@pytest.mark.parametrize("depth", DEPTHS)
async def test_a_deeply_nested_request_of_a_caller_is_rejected(depth: int, endpoint: HttpProcess) -> None:
    caller = await endpoint.caller()
    body = '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"list_servers","arguments":' + (
        '{"a":' * depth + "1" + "}" * depth + "}}"
    )
    headers = caller.headers | {"content-type": "application/json", "accept": BOTH}
    async with endpoint.http.post(endpoint.url, data=body, headers=headers) as response:
        assert response.status == 400
        assert "deeper than 200 levels" in json.dumps(await response.json())
