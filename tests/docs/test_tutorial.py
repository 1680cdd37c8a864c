"""The tutorial, carried out: each call against a real emceepee, each reply compared with what is printed there.

Ids are different each time. An id in a shown reply represents, from there on, the actual id: it must be the
same wherever the tutorial shows the same, and calls that name it are made with the real one.
"""

import json
import os
import re
import sys
from typing import Any

from support.callers.emceepee_process import EmceepeeProcess, emceepee
from support.documentation import ROOT, Block, Page
from support.sessions.replies import said_in

DEMO = "emceepee-demo"  # as the tutorial writes it; tests/package runs it from the wheel
ANYTHING = "…"
ULID = re.compile(r"[0-9A-HJKMNP-TV-Z]{26}")
Ids = dict[str, str]  # as the tutorial shows them, and as they are


async def test_every_call_of_the_tutorial_gets_the_printed_reply() -> None:
    shown = [block for block in Page(ROOT / "docs" / "tutorial.md").blocks() if block.label]
    ids: Ids = {}
    async with emceepee("--log-level", "error") as process:
        await process.initialize()
        result: dict[str, Any] = {}
        for block in shown:
            if block.label in ("reply", "notice"):
                compare(block, result, ids)
            else:
                result = await call(process, block, ids)
        assert await process.end() == 0


async def call(process: EmceepeeProcess, block: Block, ids: Ids) -> dict[str, Any]:
    arguments = json.loads(ULID.sub(lambda found: ids[found[0]], block.body))
    if arguments.get("command") == DEMO:
        arguments |= {"command": sys.executable, "args": ["-m", "emceepee.demo"]}
        if "PYTHONPATH" in os.environ:  # a source tree that is not installed
            arguments["env"] = {"PYTHONPATH": os.environ["PYTHONPATH"]}
    return await process.call(block.label, **arguments)


def compare(block: Block, result: dict[str, Any], ids: Ids) -> None:
    if block.language == "text":
        assert result["content"][0]["text"] == block.body.strip()
        return
    expected = json.loads(block.body)
    actual = result["structuredContent"] if block.label == "reply" else notices(result)
    assert shortened(actual, expected, ids) == expected


def notices(result: dict[str, Any]) -> dict[str, Any]:
    """Return the notices in the last blocks of a reply, as one object."""
    told: dict[str, Any] = {}
    for block in result["content"][1:]:
        told |= said_in(block["text"])
    return told


def shortened(actual: Any, expected: Any, ids: Ids) -> Any:
    """`actual` without what `expected` does not speak of, and with the ids that the tutorial shows."""
    if expected == ANYTHING:
        return ANYTHING
    if isinstance(actual, dict) and isinstance(expected, dict):
        return {key: shortened(actual[key], expected[key], ids) for key in expected if key in actual}
    if isinstance(actual, list) and isinstance(expected, list) and len(actual) == len(expected):
        return [shortened(item, wanted, ids) for item, wanted in zip(actual, expected, strict=True)]
    if isinstance(actual, str) and isinstance(expected, str) and ULID.fullmatch(actual) and ULID.fullmatch(expected):
        return expected if ids.setdefault(expected, actual) == actual else actual
    return actual
