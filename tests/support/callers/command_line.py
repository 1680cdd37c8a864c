"""`emceepee call` and the like as a person runs them: at a terminal, or from a script."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.callers.auth_command import Terminal, at_terminal

BOUND = 60.0
DEMO = {"command": sys.executable, "args": ["-m", "emceepee.demo"]}


@dataclass(frozen=True, kw_only=True)
class CommandLine:
    """In one home, whose configuration has the demo server, with a comment."""

    home: Path
    env: tuple[tuple[str, str], ...] = ()

    @classmethod
    def in_home(cls, home: Path, **env: str) -> "CommandLine":
        line = cls(home=home, env=tuple(env.items()))
        line.config.parent.mkdir(parents=True, exist_ok=True)
        line.config.write_text(
            f'{{\n  // mine\n  "mcpServers": {{\n    "demo": {json.dumps(DEMO)} // to try\n  }}\n}}\n'
        )
        return line

    @property
    def config(self) -> Path:
        return self.home / ".config" / "emceepee" / "config.json"

    @property
    def environment(self) -> dict[str, str]:
        hidden = ("XDG_", "EMCEEPEE_", "NO_COLOR", "TERM", "COLUMNS")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(hidden)}
        return {**kept, "HOME": str(self.home), "TERM": "xterm", "COLUMNS": "120", **dict(self.env)}

    async def run(self, *words: str, typed: str = "") -> tuple[int | None, str, str]:
        """Return the exit code, the output, and the error output. `typed` is its standard input, not a terminal."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "emceepee", *words),
            cwd=self.home,
            env=self.environment,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            out, err = await asyncio.wait_for(process.communicate(typed.encode()), BOUND)
        finally:
            if process.returncode is None:
                process.kill()
        return process.returncode, out.decode(), err.decode()

    async def says(self, *words: str) -> str:
        """Return the output of a command that must succeed without an error message."""
        code, out, err = await self.run(*words)
        assert (code, err) == (0, ""), (code, out, err)
        return out

    async def facts(self, *words: str) -> Any:
        return json.loads(await self.says(*words, "--json"))

    @asynccontextmanager
    async def at_terminal(self, *words: str) -> AsyncIterator[Terminal]:
        async with at_terminal(
            [sys.executable, "-m", "emceepee", *words], self.environment, folder=self.home
        ) as terminal:
            yield terminal
