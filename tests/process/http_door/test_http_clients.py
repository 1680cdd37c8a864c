"""Clients that nobody here wrote, over HTTP: each lists the tools, and hears a slow call's progress and result."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from mcp import Client
from mcp_types import TextContent

from support.http_door import BOUND, Door, a_door

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[3]
NODE = ROOT / "tests" / "node"
CLIENTS = ROOT / "tests" / "clients"
TOOLS = 35
DIG = {"server": "demo", "tool": "dig", "args": {"seconds": 0.2, "steps": 4}}
SAID = "Dug through 4 layers in 0.2 s and found a teapot."
MODES = [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def door() -> AsyncIterator[Door]:
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    demo = {"command": sys.executable, "args": ["-m", "emceepee.demo"], "env": path}
    async with a_door(env={"EMCEEPEE_CONFIG": json.dumps({"mcpServers": {"demo": demo}})}) as running:
        yield running


async def run(*command: str | Path) -> Any:
    """What a client says that it found."""
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=environment,
    )
    stdout, stderr = await asyncio.wait_for(process.communicate(), BOUND)
    assert process.returncode == 0, stderr.decode()
    return json.loads(stdout)


def python_of(name: str) -> Path:
    """The interpreter of an environment that `make setup` makes from tests/clients."""
    python = ROOT / ".tools" / name / "bin" / "python"
    assert python.exists(), f"{python} is missing: run `make setup`"
    return python


@pytest.mark.parametrize(("mode", "version"), MODES)
async def test_the_python_sdk(door: Door, mode: str, version: str) -> None:
    steps: list[float] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        steps.append(progress)

    async with asyncio.timeout(BOUND), Client(f"{door.url}?session=python", mode=mode) as client:
        assert client.protocol_version == version
        assert len((await client.list_tools()).tools) == TOOLS
        dug = await client.call_tool("execute_tool", DIG, progress_callback=note)
        contents = (await client.read_resource("emceepee://diagrams")).contents
    assert isinstance(dug.content[0], TextContent)
    assert (dug.content[0].text, steps) == (SAID, [1, 2, 3, 4])
    assert len(contents) == 1


async def test_version_1_of_the_python_sdk(door: Door) -> None:
    found = await run(python_of("mcp1"), CLIENTS / "mcp1_client.py", door.url)
    assert found == {"version": "2025-11-25", "tools": TOOLS, "steps": [1, 2, 3, 4], "said": SAID}


async def test_fastmcp(door: Door) -> None:
    found = await run(python_of("fastmcp"), CLIENTS / "fastmcp_client.py", f"{door.url}?session=fastmcp")
    assert found == {"tools": TOOLS, "steps": [1, 2, 3, 4], "said": SAID}


async def test_version_1_of_the_typescript_sdk(door: Door) -> None:
    found = await run("node", NODE / "http_client_1.mjs", door.url)
    assert found == {"version": "2025-11-25", "tools": TOOLS, "steps": [1, 2, 3, 4], "said": SAID}


@pytest.mark.parametrize(("mode", "version"), MODES)
async def test_version_2_of_the_typescript_client(door: Door, mode: str, version: str) -> None:
    found = await run("node", NODE / "http_client_2.mjs", f"{door.url}?session=typescript", mode)
    assert found == {"version": version, "tools": TOOLS, "steps": [1, 2, 3, 4], "said": SAID}


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector(door: Door, era: str) -> None:
    inspector = NODE / "node_modules" / ".bin" / "mcp-inspector"
    call = json.dumps({"server": "demo", "tool": "add", "args": {"a": 2, "b": 40}})
    options = ["--transport", "http", "--protocol-era", era, "--method", "tools/call", "--tool-name", "execute_tool"]
    address = f"{door.url}?session=inspector"
    found = await run("node", inspector, "--cli", address, *options, "--tool-args-json", call, "--format", "json", "-q")
    assert found["result"]["content"][0] == {"type": "text", "text": "2 + 40 = 42"}
