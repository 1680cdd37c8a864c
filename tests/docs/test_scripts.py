"""The scripts in the documentation run against the demo server with the described results."""

import json
import sys
from typing import Any

import pytest

from support.callers.emceepee_process import configured, emceepee
from support.documentation import ROOT, Page

PAGE = Page(ROOT / "docs" / "how-to" / "run-scripts.md")
SCRIPTS = [block for block in PAGE.blocks() if block.language == "python"]
DEMO = {"demo": {"command": sys.executable, "args": ["-m", "emceepee.demo"]}}


@pytest.mark.parametrize("number", range(len(SCRIPTS)))
async def test_a_script_on_the_page_runs_or_fails_as_described(number: int) -> None:
    block = SCRIPTS[number]
    async with emceepee("--log-level", "error", env=configured(DEMO)) as process:
        await process.initialize()
        value = (await process.call("codemode_execute", code=block.body))["structuredContent"]
        assert await process.end() == 0
    assert value["success"] is (block.label != "fails"), value


async def test_the_first_call_on_the_page_gets_the_printed_reply() -> None:
    blocks = [block for block in PAGE.blocks() if block.language == "json"]
    arguments, shown = json.loads(blocks[0].body), json.loads(blocks[1].body)
    assert (blocks[0].label, blocks[1].label) == ("codemode_execute", "reply")
    async with emceepee("--log-level", "error", env=configured(DEMO)) as process:
        await process.initialize()
        value: dict[str, Any] = (await process.call("codemode_execute", **arguments))["structuredContent"]
        assert await process.end() == 0
    assert isinstance(value["stats"]["durationMs"], int)
    value["stats"]["durationMs"] = shown["stats"]["durationMs"]
    assert {key: value[key] for key in shown} == shown
    assert arguments["code"].replace("'", '"').strip() == SCRIPTS[0].body.strip(), "both show the same script"
