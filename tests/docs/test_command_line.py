"""The examples of the command line page run in order as printed."""

from pathlib import Path

import pytest

from support.callers.command_line import CommandLine
from support.documentation import ROOT, Page

PAGE = Page(ROOT / "docs" / "how-to" / "use-the-command-line.md")
CONFIGURING = Page(ROOT / "docs" / "how-to" / "configure-servers.md")
COMMANDS = [
    line
    for page in (PAGE, CONFIGURING)
    for block in page.blocks()
    if block.label == "run"
    for line in block.body.splitlines()
]
SHOWN = {"emceepee call demo add a=2 b=40": next(block.body for block in PAGE.blocks() if block.language == "text")}


@pytest.mark.parametrize("command", COMMANDS)
async def test_the_command_line_examples_run(command: str, tmp_path: Path) -> None:
    line = CommandLine.in_home(tmp_path)
    (tmp_path / "sum.json").write_text('{"a": 2, "b": 40}')
    program, *words = command.split()
    assert program == "emceepee"
    out = await line.says(*words)
    assert out == SHOWN.get(command, out) != ""


async def test_the_command_line_examples_that_change_the_configuration_run_in_their_order(tmp_path: Path) -> None:
    line = CommandLine.in_home(tmp_path)
    before = line.config.read_bytes()
    for block in PAGE.blocks():
        for command in block.body.splitlines() if block.language == "sh" else ():
            words = command.split()[1:]
            if words[0] == "servers" and words[1] != "list":
                await line.says(*words[:3], "--yes", *words[3:])
    assert [row["name"] for row in (await line.facts("servers", "list"))["servers"]] == ["demo", "time"]
    await line.says("undo", "--all", "--yes")
    assert line.config.read_bytes() == before
