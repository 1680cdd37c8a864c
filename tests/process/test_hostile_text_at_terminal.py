"""Every command at a terminal, with hostile escape sequences in all texts of servers, files, and arguments."""

import json
import re
import signal
import sys
import unicodedata
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from emceepee.cli.main import build_parser
from support.callers.command_line import CommandLine
from support.callers.http_process import HttpProcess, http_process
from support.command_tree import commands_of
from support.recordings import HEADER, OPENED, call
from support.server_programs import puppet

TOKEN = "a-token-of-the-tests"
# A title, hidden text, C1 CSI, DEL, an override, an isolate, invisible letters, a tag, a line separator.
ORDERS = "\x1b]0;owned\x07 \x1b[8mhid\x9b31m \x7f \u202egnp.exe \u2066x \u200b\ufeff\u2060 \U000e0041 \u2028 \u200eend"
# What emceepee itself writes: colors, and the moves of a progress bar or a live view.
OWN_ORDERS = re.compile(r"\x1b\[(?:[0-9;]*m|\?25[lh]|\?1049[lh]|[0-9]*[ABCDGHJK])|\r")
HIDDEN_TEXT = "\x1b[8m"
PLAIN = {"type": "object", "properties": {}}
OFFER: dict[str, Any] = {
    "initialize": {"serverInfo": {"name": f"puppet {ORDERS}", "version": ORDERS}, "instructions": ORDERS},
    "tools/list": {
        "tools": [
            {"name": "say", "description": f"Says {ORDERS}", "inputSchema": PLAIN},
            {
                "name": f"other {ORDERS}",
                "title": ORDERS,
                "inputSchema": {
                    "type": "object",
                    "properties": {f"key {ORDERS}": {"type": "string", "description": ORDERS}},
                },
            },
        ]
    },
    "resources/list": {"resources": [{"uri": f"note://{ORDERS}", "name": ORDERS, "description": ORDERS}]},
    "resources/read": {"contents": [{"uri": "note://a", "text": f"read {ORDERS}"}]},
    "prompts/list": {"prompts": [{"name": f"prompt {ORDERS}", "description": ORDERS}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": f"got {ORDERS}"}}]},
}
TEXT = {"content": [{"type": "text", "text": f"result {ORDERS}"}], "structuredContent": {f"key {ORDERS}": ORDERS}}
STRUCTURED = {"content": [], "structuredContent": {f"key {ORDERS}": ORDERS}}
FORM = {
    "method": "elicitation/create",
    "params": {
        "message": f"well {ORDERS}",
        "requestedSchema": {
            "type": "object",
            "properties": {
                "a": {"type": "string", "title": f"title {ORDERS}", "description": ORDERS, "enum": [f"one {ORDERS}"]}
            },
        },
    },
}
PROGRESS = {"progressToken": "TOKEN", "progress": 1, "total": 2, "message": f"progress {ORDERS}"}
LOG = {"level": "error", "logger": ORDERS, "data": f"line {ORDERS}"}


def arguments(**wish: Any) -> str:
    return json.dumps(wish)


# Per command, the words of each run. FILES below has the files.
RUNS: dict[str, list[list[str]]] = {
    "": [["--config", "bad.json"], ["--state", f"redis://{ORDERS}"], ["--attach", "require"]],
    "serve": [["--config", "bad.json", "--port", "0"], ["--config", "broken.json"], ["--host", f"no{ORDERS}"]],
    "daemon": [["--config", "broken.json"]],
    "state": [["--state", f"sqlite:{ORDERS}.db"], ["--config", "bad.json"]],
    "state check": [["--state", f"sqlite:{ORDERS}.db"]],
    "state compact": [["--state", f"sqlite:{ORDERS}.db"]],
    "state forget": [[ORDERS], [ORDERS, "--json"]],
    "state seal": [["--state", f"sqlite:{ORDERS}.db", "--yes"]],
    "state export": [["-"], [f"{ORDERS}/x.json"]],
    "auth list": [[], ["--json"]],
    "auth status": [["puppet"], [ORDERS], ["puppet", "--json"]],
    "auth login": [[ORDERS], [ORDERS, "--json"]],
    "auth logout": [[ORDERS, "--yes"]],
    "import": [
        ["--from", "theirs.json", "--dry-run"],
        ["--from", "theirs.json", "--dry-run", "--json"],
        ["--from", f"{ORDERS}.json", "--dry-run"],
        ["--from", "theirs.yaml", "--dry-run"],
        [ORDERS],
    ],
    "install": [
        ["cursor", "--to", f"{ORDERS}/mcp.json", "--name", ORDERS, "--dry-run"],
        ["cursor", "--to", f"{ORDERS}/mcp.json", "--name", ORDERS, "--dry-run", "--json"],
        ["cursor", "--to", f"{ORDERS}.json", "--yes"],
        [ORDERS],
    ],
    "undo": [["--list"], ["--list", "--json"], ["--yes"]],
    "doctor": [[], ["--json"], [ORDERS]],
    "servers list": [[], ["--json"], ["--status"], ["--tag", ORDERS]],
    "servers add": [
        ["new", f"/bin/{ORDERS}", ORDERS, "--dry-run"],
        ["new", f"/bin/{ORDERS}", ORDERS, "--dry-run", "--json"],
        [ORDERS, "true", "--dry-run"],
    ],
    "servers remove": [["absent", "--dry-run"], [ORDERS]],
    "servers enable": [[ORDERS]],
    "servers disable": [["absent", "--dry-run"], [ORDERS]],
    "config check": [[], ["--json"], ["--config", "bad.json"], ["--config", f"{ORDERS}.json"]],
    "config schema": [[]],
    "tools": [[], ["--json"], ["puppet", f"other {ORDERS}"], [ORDERS]],
    "call": [
        ["puppet", "say", "--args", arguments(result=TEXT)],
        ["puppet", "say", "--args", arguments(result=TEXT), "--json"],
        ["puppet", "say", "--args", arguments(result=STRUCTURED)],
        ["puppet", "say", "--args", arguments(result={**TEXT, "isError": True})],
        ["puppet", "say", "--args", arguments(error={"code": -32000, "message": f"error {ORDERS}"})],
        ["puppet", "say", "--args", arguments(error={"code": -32000, "message": f"error {ORDERS}"}), "--json"],
        ["puppet", "say", "--args", arguments(send=[{"method": "notifications/progress", "params": PROGRESS}])],
        ["puppet", "say", "--args", arguments(ask=FORM)],
        ["puppet", ORDERS],
        ["puppet", "say", ORDERS],
        ["puppet", "say", f"@{ORDERS}"],
    ],
    "read": [["puppet"], ["puppet", "--json"], ["puppet", "note://a"], ["puppet", "note://a", "--json"]],
    "prompt": [["puppet"], ["puppet", "--json"], ["puppet", "p"], ["puppet", "p", "--json"], ["puppet", "p", ORDERS]],
    "search": [["say"], ["say", "--json"], [ORDERS]],
    "replay": [["--list", "recording.jsonl"], ["--list", "--json", "recording.jsonl"], [f"{ORDERS}.jsonl"]],
    "logs": [["puppet"], ["puppet", "--json"], [ORDERS]],
    "top": [["--once"], ["--json"]],
    "version": [["--config", f"{ORDERS}.json"], ["--config", f"{ORDERS}.json", "--json"]],
    "completion": [["bash"], [ORDERS]],
}
AT_THE_ENDPOINT = ("logs", "top")
SERVING = ("", "serve")
CASES = [(command, words) for command, runs in RUNS.items() for words in runs if command not in AT_THE_ENDPOINT]


def obeyed(shown: str) -> list[str]:
    """The characters on the screen that a terminal obeys or hides, besides those of emceepee's own."""
    rest = OWN_ORDERS.sub("", shown.replace(HIDDEN_TEXT, "\x1b"))
    unsafe = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [ascii(letter) for letter in rest if unicodedata.category(letter) in unsafe and letter not in "\n\t"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    home = tmp_path
    server = {"command": sys.executable, "args": [puppet.__file__, str(home / "offer.json")]}
    off = {"command": f"/bin/{ORDERS}", "args": [ORDERS], "tags": ["tag"], "description": ORDERS, "disabled": True}
    absent = off | {"disabled": False, "env": {f"TOKEN{ORDERS}": "${" + ORDERS}}
    config = {"mcpServers": {"puppet": server | {"description": ORDERS}, "off": off}, f"unknown {ORDERS}": 1}
    bad = {"mcpServers": {"puppet": server | {"cwd": 5, f"no {ORDERS}": 1, "args": [ORDERS]}}}
    theirs = {"mcpServers": {f"name {ORDERS}": server, "plain": absent | {f"more {ORDERS}": 1, "cwd": ORDERS}}}
    contents = {
        "offer.json": json.dumps(OFFER),
        ".config/emceepee/config.json": json.dumps(config),
        "bad.json": json.dumps(bad),
        "broken.json": f"{{ {ORDERS} }}",
        "theirs.json": json.dumps(theirs, ensure_ascii=False).replace("\\u001b", "\x1b"),
        "theirs.yaml": f"mcpServers:\n  - {ORDERS}: [\n",
        "recording.jsonl": "".join(
            f"{json.dumps(entry)}\n"
            for entry in ({**HEADER, "server": f"shop {ORDERS}"}, OPENED, call(1, 0.0, ORDERS, a=ORDERS))
        ),
    }
    for name, content in contents.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(content)
    return home


@pytest.fixture
async def endpoint(home: Path) -> AsyncIterator[HttpProcess]:
    """It has logged a line, and has made a call."""
    config = str(home / ".config/emceepee/config.json")
    async with http_process("--config", config, "--token", f"ada={TOKEN}") as running:
        caller = await running.caller(authorization=f"Bearer {TOKEN}")
        send = [{"method": "notifications/message", "params": LOG}]
        await caller.call("execute_tool", server="puppet", tool="say", args={"send": send, "stderr": f"err {ORDERS}"})
        yield running


def test_the_hostile_text_test_runs_every_command() -> None:
    assert set(RUNS) == {command.name for command in commands_of(build_parser()) if command.is_complete}


@pytest.mark.parametrize(("command", "words"), CASES, ids=lambda value: ascii(value)[:60])
async def test_no_untrusted_text_controls_a_terminal(command: str, words: list[str], home: Path) -> None:
    line = CommandLine(home=home)
    if command == "undo":
        await line.run("install", "cursor", "--to", f"{ORDERS}.json", "--yes")
    async with line.at_terminal(*command.split(), *words) as terminal:
        if words and "elicitation" in words[-1]:
            await terminal.until("may be left empty")
            terminal.type("\x04")
        if command in SERVING and "bad.json" in words:  # a mistake in an entry disables that server only
            await terminal.until("Ctrl-C to stop")
            terminal.process.send_signal(signal.SIGINT)
        await terminal.end()
    check_screen(terminal.shown, words)


async def test_no_text_of_a_running_emceepee_controls_a_terminal(home: Path, endpoint: HttpProcess) -> None:
    """This covers log lines and server names."""
    line = CommandLine(home=home)
    for command in AT_THE_ENDPOINT:
        for words in RUNS[command]:
            async with line.at_terminal(command, *words, "--url", endpoint.origin, "--token", TOKEN) as terminal:
                await terminal.end()
            check_screen(terminal.shown, words)


def check_screen(shown: str, words: list[str]) -> None:
    assert shown
    assert obeyed(shown) == []
    assert "Traceback" not in shown
    if "--json" in words and shown.lstrip().startswith("{"):
        assert json.JSONDecoder().raw_decode(shown.lstrip())


async def test_escapes_in_json_output_decode_to_the_original_text(home: Path) -> None:
    """Only the JSON contains the escapes. Its decoded values equal the text of the server."""
    line = CommandLine(home=home)
    code, out, _ = await line.run("call", "puppet", "say", "--args", arguments(result=TEXT), "--json")
    assert code == 0
    assert json.loads(out)["structuredContent"] == TEXT["structuredContent"]
    assert obeyed(out) == []
