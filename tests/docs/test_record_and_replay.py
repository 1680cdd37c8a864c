"""The examples of the recording page run in order as printed."""

import json
import os
import sys
from pathlib import Path

from emceepee.replay.recording_reader import parse_recording
from support.callers.command_line import CommandLine
from support.callers.replay_process import replaying
from support.documentation import ROOT, Block, Page
from support.system.ports import free_port

PAGE = Page(ROOT / "docs" / "how-to" / "record-and-replay.md")


def blocks(language: str, label: str = "") -> list[Block]:
    return [block for block in PAGE.blocks() if (block.language, block.label) == (language, label)]


async def test_a_recording_replaces_its_server(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    line, said = CommandLine.in_home(tmp_path, PATH=path), dict[str, str]()
    for block in blocks("sh", "run"):
        for command in block.body.splitlines():
            words = command.partition(" --record")[0]
            said[words] = await line.says(*command.split()[1:])
    entry, *_ = blocks("json")
    line.config.write_text(entry.body)
    (again,) = blocks("sh", "replayed")
    for command in again.body.splitlines():
        assert await line.says(*command.split()[1:]) == said[command] != ""
    (refusal,) = blocks("text")
    _, _, err = await line.run("call", "demo", "add", "a=2", "b=41")
    assert refusal.body.strip() in err


async def test_a_recording_can_be_replayed_over_http(tmp_path: Path) -> None:
    line = CommandLine.in_home(tmp_path)
    said = await line.says("call", "demo", "add", "a=2", "b=40", "--record", "demo.jsonl")
    (command,), (_, entry, _) = blocks("sh", "listen"), blocks("json")
    *words, listen = command.body.split()
    assert words == ["emceepee", "replay", "demo.jsonl", "--listen"]
    assert f"http://127.0.0.1:{listen}/mcp" in entry.body
    port = str(free_port())
    async with replaying(tmp_path / "demo.jsonl", listen=port):
        line.config.write_text(entry.body.replace(listen, port))
        assert await line.says("call", "demo", "add", "a=2", "b=40") == said != ""


def test_the_recording_shown_on_the_page_is_valid() -> None:
    (shown,) = blocks("jsonl")
    recording = parse_recording(shown.body.encode().splitlines())
    assert [exchange.method for exchange in recording.exchanges] == ["tools/call"]
    *_, config = blocks("json")
    assert json.loads(config.body)["mcpServers"]["demo"]["record"] == "demo.jsonl"
