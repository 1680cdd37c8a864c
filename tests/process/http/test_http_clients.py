"""Third-party clients over HTTP: the parts that test_client_matrix.py does not cover."""

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

from support.callers.http_process import BOUND, HttpProcess, http_process

pytestmark = pytest.mark.asyncio(loop_scope="module")

ROOT = Path(__file__).parents[3]
NODE = ROOT / "tests" / "node"
MODES = [("legacy", "2025-11-25"), ("auto", "2026-07-28"), ("2026-07-28", "2026-07-28")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[HttpProcess]:
    path = {"PYTHONPATH": os.environ["PYTHONPATH"]} if "PYTHONPATH" in os.environ else {}
    demo = {"command": sys.executable, "args": ["-m", "emceepee.demo"], "env": path}
    async with http_process(env={"EMCEEPEE_CONFIG": json.dumps({"mcpServers": {"demo": demo}})}) as running:
        yield running


async def run(*command: str | Path) -> Any:
    """The results that a client reports."""
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


@pytest.mark.parametrize(("mode", "version"), MODES)
async def test_the_python_sdk_reads_a_resource_in_a_named_session(
    endpoint: HttpProcess, mode: str, version: str
) -> None:
    async with asyncio.timeout(BOUND), Client(f"{endpoint.url}?session=python", mode=mode) as client:
        assert client.protocol_version == version
        contents = (await client.read_resource("emceepee://diagrams")).contents
    assert len(contents) == 1


@pytest.mark.parametrize("era", ["legacy", "modern"])
async def test_the_inspector_calls_a_tool_at_the_plain_url(endpoint: HttpProcess, era: str) -> None:
    inspector = NODE / "node_modules" / ".bin" / "mcp-inspector"
    call = json.dumps({"server": "demo", "tool": "add", "args": {"a": 2, "b": 40}})
    options = ["--transport", "http", "--protocol-era", era, "--method", "tools/call", "--tool-name", "execute_tool"]
    found = await run(
        "node", inspector, "--cli", endpoint.url, *options, "--tool-args-json", call, "--format", "json", "-q"
    )
    assert found["result"]["content"][0] == {"type": "text", "text": "2 + 40 = 42"}
