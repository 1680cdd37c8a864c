"""Third-party clients use a real emceepee over stdio."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import TextContent

from emceepee import __file__ as emceepee_file
from support.callers.emceepee_process import BOUND
from support.callers.foreign_clients import CLIENTS, a_foreign_client, emceepee_on_stdio
from support.server_programs.real_servers import NODE, everything
from support.server_programs.stdio_entries import stdio_server

EMCEEPEE = (sys.executable, "-m", "emceepee")
INSPECTOR = NODE / "node_modules" / ".bin" / "mcp-inspector"


async def run(*command: str, env: dict[str, str]) -> tuple[int, bytes, bytes]:
    """The exit code, standard output and standard error of a program."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, **env},
    )
    stdout, stderr = await asyncio.wait_for(process.communicate(), BOUND)
    assert process.returncode is not None
    return process.returncode, stdout, stderr


# The Python SDK.


@pytest.mark.parametrize(
    ("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]
)
async def test_the_python_sdk_adds_a_server_and_calls_its_tools(mode: str, version: str) -> None:
    """The client uses the handshake era, discovery, and the newest version."""
    emceepee = StdioServerParameters(command=EMCEEPEE[0], args=list(EMCEEPEE[1:]), env=dict(os.environ))
    async with asyncio.timeout(BOUND), Client(stdio_client(emceepee), mode=mode) as client:
        assert client.protocol_version == version
        listed = await client.list_tools()
        assert {"add_server", "list_tools", "execute_tool"} <= {tool.name for tool in listed.tools}
        added = await client.call_tool("add_server", {"name": "small", **stdio_server()})
        assert not added.is_error
        assert added.structured_content is not None
        assert added.structured_content["server"]["status"] == "connected"
        calls = [{"server": "small", "tool": "echo", "args": {"text": f"number {number}"}} for number in range(20)]
        results = await asyncio.gather(*(client.call_tool("execute_tool", call) for call in calls))
        assert [_first_text(result.content) for result in results] == [f"number {number}" for number in range(20)]
        refused = await client.call_tool("execute_tool", {"server": "smallx", "tool": "echo"})
        assert refused.is_error
        assert "Did you mean small?" in _first_text(refused.content)


def _first_text(content: Any) -> str:
    assert isinstance(content[0], TextContent)
    return content[0].text


# The TypeScript SDK.


async def test_the_typescript_sdk_adds_a_server_and_calls_its_tools() -> None:
    """The SDK validates every answer against its own schemas and starts a real server through emceepee."""
    async with a_foreign_client(CLIENTS["typescript-1"], emceepee_on_stdio()) as client:
        added = await client.call("add_server", name="everything", **everything())
        listed = await client.call("list_tools", server="everything", detail="names")
        echoed = await client.call("execute_tool", server="everything", tool="echo", args={"message": "hello"})
        refused = await client.call("execute_tool", server="nobody", tool="echo")
    assert added["structuredContent"]["server"]["serverInfo"]["name"] == "mcp-servers/everything"
    assert {"server": "everything", "name": "echo"} in listed["structuredContent"]["tools"]
    assert echoed["content"][0] == {"type": "text", "text": "Echo: hello"}
    assert refused["isError"] is True
    assert refused["structuredContent"]["error"]["code"] == "TOOL_ERR_SERVER_NOT_FOUND"


# The Inspector.


async def inspect(home: Path, *options: str) -> tuple[int, bytes, bytes]:
    """Its command line, with nothing written outside of `home`. It hands on little of the environment by itself."""
    env = {"HOME": str(home), "MCP_INSPECTOR_SECRET_STORE": "memory"}
    same_code = ("-e", f"PYTHONPATH={Path(emceepee_file).parents[1]}")
    return await run("node", str(INSPECTOR), "--cli", *EMCEEPEE, *same_code, *options, env=env)


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_accepts_the_tool_schemas(era: str, tmp_path: Path) -> None:
    """Its strict lint looks for schemas that the API of some model would reject."""
    code, stdout, stderr = await inspect(tmp_path, "--method", "tools/list", "--strict", "--protocol-era", era)
    assert code == 0, stderr
    tools = json.loads(stdout)["tools"]
    assert {"add_server", "execute_tool"} <= {tool["name"] for tool in tools}
    assert b"Suggestion:" not in stderr, stderr  # so it has no milder complaint either


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_calls_a_tool(era: str, tmp_path: Path) -> None:
    options = ("--method", "tools/call", "--tool-name", "list_servers", "--protocol-era", era)
    code, stdout, stderr = await inspect(tmp_path, *options)
    assert code == 0, stderr
    assert json.loads(stdout)["structuredContent"] == {"servers": []}
