"""Servers used from the command line: real commands, a real server, and a real terminal."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest

from support.callers.command_line import DEMO, CommandLine
from support.callers.http_process import HttpProcess, http_process
from support.server_programs.stdio_entries import gone, stdio_server
from support.waiting import eventually

TOKEN = "a-token-of-the-tests"
BOLD = "\x1b["


@pytest.fixture
def line(tmp_path: Path) -> CommandLine:
    return CommandLine.in_home(tmp_path)


@pytest.fixture
async def endpoint(tmp_path: Path) -> AsyncIterator[HttpProcess]:
    config = tmp_path / "served.json"
    config.write_text(json.dumps({"mcpServers": {"demo": DEMO}}))
    link = str(tmp_path / "link")
    async with http_process("--config", str(config), "--token", f"ada={TOKEN}", "--link-file", link) as running:
        yield running


# Calling.


async def test_command_line_arguments_are_typed_by_the_schema_of_the_tool(line: CommandLine) -> None:
    assert await line.says("call", "demo", "add", "a=2", "b=40") == "2 + 40 = 42\n"
    result = await line.facts("call", "demo", "add", "--args", '{"a": 1}', "b=2.5")
    assert result["structuredContent"] == {"sum": 3.5}
    assert [block["text"] for block in result["content"]] == ["1 + 2.5 = 3.5"]


async def test_tool_arguments_may_follow_flags(line: CommandLine) -> None:
    assert await line.says("prompt", "demo", "--timeout", "9", "plan_dinner", "cuisine=thai")
    assert await line.says("read", "demo", "--timeout", "9", "note://today") == "Buy bread.\n"
    code, _, err = await line.run("read", "demo", "--timeout", "9", "note://today", "more")
    assert (code, "unrecognized arguments: more" in err) == (2, True)


async def test_tool_arguments_are_read_from_a_file_or_standard_input(line: CommandLine) -> None:
    (line.home / "sum.json").write_text('{"a": 3, "b": 4}')
    assert await line.says("call", "demo", "add", "@sum.json") == "3 + 4 = 7\n"
    code, out, _ = await line.run("call", "demo", "add", "@-", "b=1", typed='{"a": 3, "b": 4}')
    assert (code, out) == (0, "3 + 1 = 4\n")


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["add", "a=two", "b=1"], 2, "a: expected a number, found 'two'"),
        (["add", "a"], 2, "expected key=value or @FILE, found 'a'"),
        (["add", "--args", "[1]"], 2, "--args: expected an object with the tool's arguments"),
        (["add", "@nothing.json"], 2, "@nothing.json: cannot be read"),
        (["ad", "a=1", "b=1"], 1, "Did you mean add?"),
        (["add", "a=1"], 1, "Object missing required field `b`"),
        (["dig", "seconds=30", "--timeout", "0.2"], 1, "it took longer than 0.2 s and was cancelled; pass a longer"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_a_failed_command_line_call_reports_the_reason_and_its_exit_code(
    words: list[str], code: int, expected: str, line: CommandLine
) -> None:
    ended, out, err = await line.run("call", "demo", *words)
    assert (ended, out) == (code, "")
    assert err.startswith("emceepee: ")
    assert expected in err


async def test_with_the_json_flag_an_error_is_json(line: CommandLine) -> None:
    code, out, _ = await line.run("call", "demo", "add", "a=1", "--json")
    assert (code, json.loads(out)["isError"]) == (1, True)
    code, out, _ = await line.run("call", "demo", "add", "a=x", "--json")
    assert (code, json.loads(out)) == (2, {"error": "a: expected a number, found 'x'"})


async def test_the_terminal_shows_a_form_field_by_field(line: CommandLine) -> None:
    async with line.at_terminal("call", "demo", "book_table", "restaurant=Luigi") as terminal:
        await terminal.until("Guests (from 1; to 12): ")
        assert "A table at Luigi: how many guests, and when?" in terminal.shown
        terminal.type("99\n")
        await terminal.until("must be at most 12")
        terminal.type("4\n")
        await terminal.until("Time (18:00 | 19:30 | 21:00): ")
        terminal.type("19:30\n")
        await terminal.until("By the window? (y or n; nothing means n): ")
        terminal.type("y\n")
        await terminal.until("Send this? [Y/n] ")
        terminal.type("\n")
        assert await terminal.end() == 0
    assert "Booked at Luigi: 4 guests at 19:30 by the window." in terminal.shown


async def test_at_the_terminal_a_form_can_be_declined_and_a_sampling_request_answered(line: CommandLine) -> None:
    async with line.at_terminal("call", "demo", "book_table") as terminal:
        for prompt, answer in (("Guests", "4\n"), ("Time", "19:30\n"), ("window", "\n"), ("Send this?", "n\n")):
            await terminal.until(prompt)
            terminal.type(answer)
        assert await terminal.end() == 0
    assert "No table was booked" in terminal.shown
    async with line.at_terminal("call", "demo", "haiku", "topic=tea") as terminal:
        await terminal.until("Write a haiku about tea.")
        await terminal.until("to decline: ")
        terminal.type("steam above the cup\n")
        assert await terminal.end() == 0
    assert "steam above the cup\r\n— human" in terminal.shown


async def test_ctrl_c_ends_a_question_and_its_server(line: CommandLine) -> None:
    async with line.at_terminal("call", "demo", "book_table") as terminal:
        await terminal.until("Guests")
        terminal.type("\x03")
        assert await terminal.end() == 1
    assert "emceepee: stopped" in terminal.shown
    assert "Traceback" not in terminal.shown


async def test_without_a_terminal_the_question_is_shown_and_canceled(line: CommandLine) -> None:
    code, out, err = await line.run("call", "demo", "book_table")
    assert (code, out) == (0, "No table was booked at Chez Demo.\n")
    assert "how many guests, and when?" in err
    assert "there is no terminal" in err


async def test_a_progress_bar_is_shown_on_a_terminal_only(line: CommandLine) -> None:
    words = ("call", "demo", "dig", "seconds=1.5", "steps=3")
    async with line.at_terminal(*words) as terminal:
        await terminal.until("demo.dig")
        await terminal.until("layer 2 of 3")
        assert await terminal.end() == 0
    assert "found a teapot" in terminal.shown
    assert await line.says(*words) == "Dug through 3 layers in 1.5 s and found a teapot.\n"


async def test_colors_are_for_terminals_without_no_color(line: CommandLine, tmp_path: Path) -> None:
    async with line.at_terminal("servers", "list") as terminal:
        assert await terminal.end() == 0
    assert BOLD in terminal.shown
    async with CommandLine.in_home(tmp_path, NO_COLOR="1").at_terminal("servers", "list") as terminal:
        assert await terminal.end() == 0
    assert BOLD not in terminal.shown
    assert BOLD not in await line.says("servers", "list")


# What servers offer.


async def test_the_command_line_lists_reads_and_searches_tools_resources_and_prompts(line: CommandLine) -> None:
    assert "  book_table  Book a table." in await line.says("tools", "demo")
    assert "steps=… (integer, optional)  How often progress is reported" in await line.says("tools", "demo", "dig")
    assert [tool["name"] for tool in (await line.facts("tools"))["tools"]][:2] == ["add", "dig"]
    assert "note://today" in await line.says("read", "demo")
    assert await line.says("read", "demo", "note://today") == "Buy bread.\n"
    assert "plan_dinner" in await line.says("prompt", "demo")
    assert (await line.says("prompt", "demo", "plan_dinner", "cuisine=thai")).startswith("user: Plan a thai dinner")
    assert (await line.says("search", "slow", "treasure")).startswith("demo.dig(")


@asynccontextmanager
async def daemon_ended(runtime: Path) -> AsyncIterator[None]:
    """The daemon that was started there ends."""
    try:
        yield
    finally:
        lock = runtime / "emceepee" / "daemon.lock"
        if lock.exists():
            pid = int(lock.read_text())
            os.kill(pid, signal.SIGTERM)
            await gone(pid)


@pytest.mark.parametrize("way", ["never", "auto"])
async def test_without_a_command_a_terminal_shows_the_configured_servers_and_the_help_command(
    tmp_path: Path, way: str
) -> None:
    line = CommandLine.in_home(tmp_path, EMCEEPEE_STATE="memory", XDG_RUNTIME_DIR=str(tmp_path))
    async with daemon_ended(tmp_path), line.at_terminal("--attach", way, "--log-level", "error") as terminal:
        await terminal.until("Press Ctrl-C to stop.")
        assert "serving MCP on standard input and output" in terminal.shown
        assert "`emceepee --help` lists other commands" in terminal.shown
        terminal.type('{"jsonrpc": "2.0", "id": 1, "method": "ping"}\n')
        await terminal.until('"result"')  # and it does serve
        terminal.type("\x03")
        await terminal.end()
    assert "Traceback" not in terminal.shown
    code, out, err = await line.run("--log-level", "error")
    assert (code, out, err) == (0, "", "")


@pytest.mark.parametrize("is_served", [False, True], ids=["here", "at a running emceepee"])
async def test_a_command_for_one_server_starts_no_other(tmp_path: Path, is_served: bool) -> None:
    line, marker = CommandLine.in_home(tmp_path), tmp_path / "marker"
    servers = {"demo": DEMO, "other": stdio_server(f"marker={marker}")}
    line.config.write_text(json.dumps({"mcpServers": servers}))
    async with AsyncExitStack() as stack:
        where: tuple[str, ...] = ()
        if is_served:
            served = await stack.enter_async_context(http_process("--config", str(line.config)))
            where = ("--url", served.origin)
        assert await line.says("call", "demo", "add", "a=2", "b=40", *where) == "2 + 40 = 42\n"
        assert "book_table" in await line.says("tools", "demo", *where)
        assert await line.says("read", "demo", "note://today", *where) == "Buy bread.\n"
        assert "plan_dinner" in await line.says("prompt", "demo", *where)
        assert "thai dinner" in await line.says("prompt", "demo", "plan_dinner", "cuisine=thai", *where)
        assert "demo.dig(" in await line.says("search", "--server", "demo", "treasure", *where)
        code, _, err = await line.run("call", "dem", "add", *where)
        assert (code, "Did you mean demo" in err) == (1, True)
        assert not marker.exists()
        assert "echo" in await line.says("tools", "other", *where)
        assert marker.exists()


async def test_a_command_for_one_server_resolves_no_secret_of_another(tmp_path: Path) -> None:
    modules, asked = tmp_path / "modules", tmp_path / "asked"
    modules.mkdir()
    keyring = f"def get_password(service, name):\n    open({str(asked)!r}, 'w').close()\n    return 'a secret'\n"
    (modules / "keyring.py").write_text(keyring)
    line = CommandLine.in_home(tmp_path, PYTHONPATH=str(modules))
    servers = {"demo": DEMO, "other": DEMO | {"env": {"TOKEN": "${keyring:other/token}"}}}
    line.config.write_text(json.dumps({"mcpServers": servers}))
    assert await line.says("call", "demo", "add", "a=2", "b=40") == "2 + 40 = 42\n"
    assert "demo" in await line.says("auth", "status", "demo")
    assert "State file:" in await line.says("state")
    code, _, err = await line.run("auth", "status", "dmo")
    assert (code, "Did you mean demo?" in err) == (2, True)
    assert not asked.exists()
    assert await line.says("call", "other", "add", "a=2", "b=40") == "2 + 40 = 42\n"
    assert asked.exists()


async def test_a_list_of_all_servers_waits_for_slow_ones(line: CommandLine) -> None:
    """A one-shot command would start them again on each call."""
    limits = {"list_patience_seconds": 0}
    line.config.write_text(json.dumps({"mcpServers": {"one": DEMO, "two": DEMO}, "limits": limits}))
    found = await line.facts("tools")
    assert ({tool["server"] for tool in found["tools"]}, found["errors"]) == ({"one", "two"}, [])


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["tools", "demon"], 'No server is called "demon"'),
        (["tools", "demo", "digg"], "see them with: emceepee tools demo"),
        (["read", "demo", "note://none"], "There is no note://none"),
        (["prompt", "demo", "plan_dinner"], "it needs a cuisine"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_a_missing_server_or_tool_is_reported_with_the_next_step(
    words: list[str], expected: str, line: CommandLine
) -> None:
    code, out, err = await line.run(*words)
    assert (code, out) == (1, "")
    assert expected in err


async def test_without_servers_the_commands_that_add_some_are_listed(tmp_path: Path) -> None:
    code, _, err = await CommandLine(home=tmp_path).run("tools")
    assert code == 2
    assert "add one with `emceepee servers add`" in err


# At a running emceepee.


async def test_the_same_commands_work_with_a_running_emceepee(endpoint: HttpProcess, tmp_path: Path) -> None:
    line = CommandLine(home=tmp_path, env=(("EMCEEPEE_TOKEN", TOKEN),))
    where = ("--url", endpoint.origin)
    assert await line.says("call", "demo", "add", "a=2", "b=40", *where) == "2 + 40 = 42\n"
    assert "book_table" in await line.says("tools", *where)
    async with line.at_terminal("call", "demo", "book_table", *where) as terminal:
        for prompt, answer in (("Guests", "4\n"), ("Time", "19:30\n"), ("window", "\n"), ("Send this?", "\n")):
            await terminal.until(prompt)
            terminal.type(answer)
        assert await terminal.end() == 0
    assert "Booked at Chez Demo: 4 guests at 19:30." in terminal.shown
    code, _, err = await CommandLine(home=tmp_path).run("tools", *where)
    assert (code, "pass --token, or set EMCEEPEE_TOKEN" in err) == (1, True)
    code, _, err = await line.run("tools", "--url", "http://127.0.0.1:1")
    assert (code, "Start one with `emceepee serve`" in err) == (1, True)


async def test_the_logs_command_shows_and_follows_logs(endpoint: HttpProcess, tmp_path: Path) -> None:
    line, where = CommandLine(home=tmp_path), ("--url", endpoint.origin, "--token", TOKEN)
    caller = await endpoint.caller(authorization=f"Bearer {TOKEN}")
    await caller.call("execute_tool", server="demo", tool="mumble", args={"about": "tea"})
    await eventually(lambda: _mentions(line, "mumbling about tea", *where), what="the line is kept")
    async with line.at_terminal("logs", "-f", "demo", *where) as terminal:
        await terminal.until("mumbling about tea")
        await caller.call("execute_tool", server="demo", tool="mumble", args={"about": "milk"})
        await terminal.until("mumbling about milk")
        terminal.type("\x03")
        assert await terminal.end() == 0
    assert (await line.says("logs", "-n", "0", *where)) == ""
    code, _, err = await line.run("logs", "--url", endpoint.origin)
    assert (code, "pass the console link" in err) == (1, True)


async def _mentions(line: CommandLine, words: str, *where: str) -> bool:
    return words in await line.says("logs", *where)


async def test_the_top_command_shows_servers_calls_tasks_and_questions(endpoint: HttpProcess, tmp_path: Path) -> None:
    line, link = CommandLine(home=tmp_path), tmp_path / "link"
    caller = await endpoint.caller(authorization=f"Bearer {TOKEN}")
    asked = await caller.call("execute_tool", server="demo", tool="book_table", args={})
    assert "proxy_task" in asked["structuredContent"]
    facts = await line.facts("top", "--url", link.read_text().strip())
    assert [server["name"] for server in facts["servers"]] == ["demo"]
    assert [task["toolName"] for task in facts["tasks"]] == ["book_table"]
    assert [question["server"] for question in facts["questions"]] == ["demo"]
    async with line.at_terminal("top", "--url", endpoint.origin, "--token", TOKEN) as terminal:
        await terminal.until("1 questions")
        await terminal.until("book_table")
        await caller.call("execute_tool", server="demo", tool="add", args={"a": 1, "b": 2})
        await terminal.until("add ")
        terminal.type("\x03")
        assert await terminal.end() == 0
    assert "Traceback" not in terminal.shown


# The configuration.


async def test_the_servers_commands_keep_comments_and_undo_changes_byte_for_byte(line: CommandLine) -> None:
    before = line.config.read_bytes()
    await line.says("servers", "add", "time", "--yes", "--env", "TZ=UTC", "--", "uvx", "mcp-server-time", "--local")
    await line.says("servers", "add", "web", "https://x.test/mcp", "--header", "X-Key: ${KEY}", "--yes")
    await line.says("servers", "disable", "time", "web", "--yes")
    await line.says("servers", "enable", "web", "--yes")
    await line.says("servers", "remove", "web", "--yes")
    text = line.config.read_text()
    assert "// mine" in text
    assert "// to try" in text
    rows = (await line.facts("servers", "list"))["servers"]
    assert [(row["name"], row["type"], row["where"], row["enabled"]) for row in rows] == [
        ("demo", "stdio", f"{sys.executable} -m emceepee.demo", True),
        ("time", "stdio", "uvx mcp-server-time --local", False),
    ]
    assert await line.says("call", "demo", "add", "a=1", "b=1") == "1 + 1 = 2\n"  # with comments, it is still read
    await line.says("undo", "--all", "--yes")
    assert line.config.read_bytes() == before


async def test_the_status_of_servers_shows_the_findings_of_doctor(line: CommandLine) -> None:
    await line.says("servers", "add", "gone", "no-such-program", "--yes")
    code, out, _ = await line.run("servers", "list", "--status", "--json")
    rows = {row["name"]: row for row in json.loads(out)["servers"]}
    assert (code, rows["demo"]["status"], rows["gone"]["status"]) == (1, "ok", "problem")
    assert rows["gone"]["findings"][0]["remedy"]


@pytest.mark.parametrize(
    ("words", "code", "expected"),
    [
        (["add", "demo", "x", "--yes"], 1, "emceepee servers remove demo"),
        (["add", "emceepee", "x", "--yes"], 1, "is reserved for emceepee"),
        (["add", "web", "ftp://x", "--yes"], 1, "url"),
        (["add", "web", "https://x.test/mcp", "--env", "A=b", "--yes"], 1, "these are for a program"),
        (["remove", "nix", "--yes"], 1, "there are demo"),
        (["remove", "demo"], 2, "pass --yes to write without confirmation"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
async def test_a_failed_write_to_the_configuration_reports_the_reason_and_changes_nothing(
    words: list[str], code: int, expected: str, line: CommandLine
) -> None:
    before = line.config.read_bytes()
    ended, _, err = await line.run("servers", *words)
    assert (ended, line.config.read_bytes()) == (code, before)
    assert expected in err


# Itself.


async def test_the_version_command_names_its_platform(line: CommandLine) -> None:
    facts = await line.facts("version")
    assert facts.keys() == {"version", "python", "platform", "protocols", "stateEngine", "config"}
    assert facts["config"] == str(line.config)
    assert facts["protocols"][-1] == "2026-07-28"
    assert (await line.says("version")).startswith(f"emceepee {facts['version']}\n")


TRY = """
source /dev/stdin
try() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _emceepee; echo "${COMPREPLY[*]}"; }
try emceepee se
try emceepee servers ""
try emceepee servers remove --y
try emceepee search --type ""
try emceepee --config file.json undo --l
try emceepee call --config ""
"""


async def test_bash_completes_commands_flags_and_choices(line: CommandLine) -> None:
    script = await line.says("completion", "bash")
    bash = ("bash", "--norc", "-euc", TRY)
    done = await asyncio.to_thread(subprocess.run, bash, input=script, capture_output=True, text=True, timeout=30)
    assert (done.stderr, done.stdout.splitlines()) == (
        "",
        [
            "serve servers search",
            "list add remove enable disable",
            "--yes",
            "tools resources prompts servers all",
            "--list",
            "",
        ],
    )


async def test_a_tag_filter_lists_matching_servers_and_starts_no_others(line: CommandLine) -> None:
    marker = line.home / "marker"
    other = stdio_server(f"marker={marker}") | {"tags": ["home"]}
    servers = {"demo": DEMO | {"tags": ["work"]}, "other": other}
    line.config.write_text(json.dumps({"mcpServers": servers}))
    assert [row["name"] for row in (await line.facts("servers", "list", "--tag", "work"))["servers"]] == ["demo"]
    assert {tool["server"] for tool in (await line.facts("tools", "--tag", "work"))["tools"]} == {"demo"}
    found = await line.facts("search", "add", "numbers", "--tag", "work")
    assert found["results"][0]["server"] == "demo"
    assert not marker.exists()
    for words in (["servers", "list"], ["tools"]):
        code, _, err = await line.run(*words, "--tag", "wrk")
        assert (code, 'no server has the tag "wrk"' in err) == (1, True)
