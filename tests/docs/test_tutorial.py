"""The tutorial, carried out: each call against a real emceepee, each reply compared with what is printed there."""

import json
import os
import sys
from typing import Any

from support.emceepee_process import EmceepeeProcess, emceepee
from support.pages import ROOT, Block, Page

PYTHON = "/path/to/checkout/.venv/bin/python"  # as the tutorial writes it
ANYTHING = "…"


async def test_every_call_of_the_tutorial_gets_the_reply_it_shows() -> None:
    shown = [block for block in Page(ROOT / "docs" / "tutorial.md").blocks() if block.label]
    async with emceepee("--log-level", "error") as process:
        await process.initialize()
        result: dict[str, Any] = {}
        for block in shown:
            if block.label == "reply":
                compare(block, result)
            else:
                result = await call(process, block)
        assert await process.end() == 0


async def call(process: EmceepeeProcess, block: Block) -> dict[str, Any]:
    arguments = json.loads(block.body)
    if arguments.get("command") == PYTHON:
        arguments["command"] = sys.executable
        if "PYTHONPATH" in os.environ:  # a source tree that is not installed
            arguments["env"] = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    return await process.call(block.label, **arguments)


def compare(block: Block, result: dict[str, Any]) -> None:
    if block.language == "text":
        assert result["content"][0]["text"] == block.body.strip()
    else:
        expected = json.loads(block.body)
        assert shortened(result["structuredContent"], expected) == expected


def shortened(actual: Any, expected: Any) -> Any:
    """`actual` without what `expected` does not speak of."""
    if expected == ANYTHING:
        return ANYTHING
    if isinstance(actual, dict) and isinstance(expected, dict):
        return {key: shortened(actual[key], expected[key]) for key in expected if key in actual}
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        return [shortened(item, wanted) for item, wanted in zip(actual, expected, strict=True)]
    return actual
