"""Clients and agent libraries that nobody here wrote, each in a small program that a test drives call by call."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.callers.emceepee_process import BOUND

ROOT = Path(__file__).parents[3]
LONGEST_LINE = 1 << 24
HANDSHAKE, MODERN = "2025-11-25", "2026-07-28"
BLOCKS, STRUCTURED = "blocks", "structured content"


@dataclass(frozen=True, slots=True)
class Program:
    """The command of a program, and the facts about its library.

    `version`: the protocol version it must end up with; None if the library does not tell.
    `shows`: which parts of a result that has both.
    """

    interpreter: str
    script: str
    options: tuple[str, ...] = ()
    version: str | None = None
    shows: frozenset[str] = frozenset({BLOCKS, STRUCTURED})


MCP1, AGENT_LIBRARIES = ".tools/mcp1/bin/python", ".tools/agents/bin/python"


def _sdk2(interpreter: str, script: str) -> dict[str, Program]:
    """Return a client whose way to find the protocol version is an argument."""
    modes = {"auto": MODERN, "legacy": HANDSHAKE, MODERN: MODERN}
    return {mode: Program(interpreter, script, (mode,), version) for mode, version in modes.items()}


def _agent(interpreter: str, script: str, *options: str, shows: str) -> Program:
    return Program(interpreter, script, options, shows=frozenset({shows}))


PYTHON_SDK_2 = _sdk2(sys.executable, "tests/clients/mcp2_client.py")
TYPESCRIPT_SDK_2 = _sdk2("node", "tests/node/sdk2_client.mjs")

# What these say is what a call returned.
CLIENTS = {
    "mcp-1": Program(MCP1, "tests/clients/mcp1_client.py", version=HANDSHAKE),
    "mcp-2": PYTHON_SDK_2["auto"],
    "fastmcp-4": Program(AGENT_LIBRARIES, "tests/clients/fastmcp_client.py", version=MODERN),
    "typescript-1": Program("node", "tests/node/sdk1_client.mjs", version=HANDSHAKE),
    "typescript-2": TYPESCRIPT_SDK_2["auto"],
    "ai-sdk": Program("node", "tests/node/ai_sdk_client.mjs"),
}
# What these say is what the library shows its model.
AGENTS = {
    "pydantic-ai": _agent(AGENT_LIBRARIES, "tests/clients/pydantic_ai_agent.py", shows=STRUCTURED),
    "openai-agents": _agent(AGENT_LIBRARIES, "tests/clients/openai_agent.py", "text", shows=BLOCKS),
    "openai-agents-structured": _agent(
        AGENT_LIBRARIES, "tests/clients/openai_agent.py", "structured", shows=STRUCTURED
    ),
    "ai-sdk": _agent("node", "tests/node/ai_sdk_agent.mjs", shows=BLOCKS),
}
LANGCHAIN = _agent(MCP1, "tests/clients/langchain_client.py", shows=BLOCKS)


def emceepee_on_stdio(*flags: str, env: dict[str, str] | None = None) -> dict[str, Any]:
    """The place of an emceepee that the client starts itself."""
    kept = {name: os.environ[name] for name in ("PATH", "HOME", "PYTHONPATH") if name in os.environ}
    return {"command": sys.executable, "args": ["-m", "emceepee", *flags], "env": kept | (env or {})}


class ForeignClient:
    """One running program. `hello` is what it found when it connected."""

    def __init__(self, program: Program, process: asyncio.subprocess.Process) -> None:
        self.program, self.process = program, process
        self.hello: dict[str, Any] = {}
        self.stderr: list[str] = []

    async def call(self, tool: str, /, **arguments: Any) -> Any:
        """Return the program's answer to this call."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps({"tool": tool, "arguments": arguments}).encode() + b"\n")
        return await self.next_line()

    async def next_line(self) -> Any:
        assert self.process.stdout is not None
        line = await asyncio.wait_for(self.process.stdout.readline(), BOUND)
        assert line, f"it ended without an answer: {await self._complaint()}"
        return json.loads(line)

    async def end(self) -> None:
        """It has no more calls to make: it must close its connection and leave by itself, without complaint."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        code = await asyncio.wait_for(self.process.wait(), BOUND)
        assert code == 0, await self._complaint()

    async def read_stderr(self) -> None:
        assert self.process.stderr is not None
        while line := await self.process.stderr.readline():
            self.stderr.append(line.decode())

    async def _complaint(self) -> str:
        await asyncio.wait_for(self.process.wait(), BOUND)
        return "".join(self.stderr)


@asynccontextmanager
async def a_foreign_client(program: Program, place: dict[str, Any]) -> AsyncIterator[ForeignClient]:
    """A connected client program; `place` is {"url"} or {"command", "args", "env"} of emceepee."""
    assert shutil.which(ROOT / program.interpreter) or shutil.which(program.interpreter), "run `make setup`"
    process = await asyncio.create_subprocess_exec(
        *(program.interpreter, program.script, json.dumps(place), *program.options),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        cwd=ROOT,
        env={name: text for name, text in os.environ.items() if name != "PYTHONPATH"},
        limit=LONGEST_LINE,
    )
    client = ForeignClient(program, process)
    reading = asyncio.create_task(client.read_stderr())
    try:
        client.hello = await client.next_line()
        yield client
        await client.end()
    finally:
        if process.returncode is None:
            process.kill()
            await asyncio.wait_for(process.wait(), BOUND)
        await asyncio.wait_for(reading, BOUND)
