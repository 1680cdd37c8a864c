"""`import`, `install`, and `undo` in a temporary home directory."""

import io
import json
from pathlib import Path
from typing import Any

import pytest

from emceepee.cli.main import main
from emceepee.cli.setup import install_command as installing
from emceepee.cli.terminal import Paint
from emceepee.clients.client_file import ClientFile
from emceepee.clients.client_program import ClientProgram
from emceepee.clients.known_clients import CLIENTS
from emceepee.paths import CONFIG_VARIABLE

COMMAND = ("/opt/emceepee",)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in (CONFIG_VARIABLE, "XDG_CONFIG_HOME", "XDG_STATE_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(installing, "own_command", lambda start: COMMAND)
    return tmp_path


def put(home: Path, place: str, content: Any) -> Path:
    path = home / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content, indent=2))
    return path


def files_of(home: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(home)): path.read_bytes()
        for path in sorted(home.rglob("*"))
        if path.is_file() and ".local/state" not in str(path)
    }


def told(capsys: pytest.CaptureFixture[str]) -> Any:
    return json.loads(capsys.readouterr().out)


def own_servers(home: Path) -> Any:
    return json.loads((home / ".config/emceepee/config.json").read_text())["mcpServers"]


GIT = {"command": "uvx", "args": ["mcp-server-git"]}


def test_import_reads_all_clients_and_writes_equal_servers_once(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home, ".cursor/mcp.json", {"mcpServers": {"git": GIT, "web": {"url": "https://x/mcp"}}})
    put(home, ".codex/config.toml", '[mcp_servers.repo]\ncommand = "uvx"\nargs = ["mcp-server-git"]\n')
    put(home, ".continue/mcpServers/one.json", {"mcpServers": {"web": {"url": "https://y/mcp"}}})
    assert main(["import", "--yes", "--json"]) == 0
    facts = told(capsys)
    assert [(row["client"], row["name"], row["outcome"], row["importedAs"]) for row in facts["servers"]] == [
        ("cursor", "git", "new", "git"),
        ("cursor", "web", "new", "web"),
        ("codex", "repo", "duplicate", None),
        ("continue", "web", "renamed", "web-continue"),
    ]
    assert own_servers(home) == {"git": GIT, "web": {"url": "https://x/mcp"}, "web-continue": {"url": "https://y/mcp"}}
    assert (home / ".config/emceepee/config.json").stat().st_mode & 0o777 == 0o600


def test_import_writes_nothing_without_a_terminal_or_yes(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home, ".cursor/mcp.json", {"mcpServers": {"git": GIT}})
    before = files_of(home)
    assert main(["import"]) == 2
    captured = capsys.readouterr()
    assert "nothing was written: pass --yes" in captured.err
    assert '+    "git": {' in captured.out
    assert main(["import", "--dry-run"]) == 0
    assert files_of(home) == before


@pytest.mark.parametrize(("answer", "code", "is_written"), [("y\ny\n", 0, True), ("n\nn\n", 1, False), ("", 1, False)])
def test_import_asks_for_confirmation_at_a_terminal(
    answer: str, code: int, is_written: bool, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = put(home, ".cursor/mcp.json", {"mcpServers": {"git": GIT}})
    monkeypatch.setattr("emceepee.cli.setup.import_command.can_ask", lambda: True)
    monkeypatch.setattr("emceepee.cli.client_changes.can_ask", lambda: True)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    assert main(["import"]) == code
    assert (home / ".config/emceepee/config.json").exists() == is_written
    assert ("git" in source.read_text()) != is_written


def test_import_neither_loses_nor_shows_a_secret(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home, ".cursor/mcp.json", '{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "s3cret"}}}}')
    assert main(["import", "--take", "--yes"]) == 0
    captured = capsys.readouterr()
    assert "s3cret" not in captured.out + captured.err
    assert "${env:NAME}" in captured.out
    assert own_servers(home)["a"]["env"] == {"API_KEY": "s3cret"}


def test_import_skips_a_broken_file_and_reads_the_others(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home, ".cursor/mcp.json", "{oops")
    put(home, ".gemini/settings.json", {"mcpServers": {"git": GIT}})
    assert main(["import", "--yes"]) == 0
    assert "Cursor is skipped" in capsys.readouterr().err
    assert own_servers(home) == {"git": GIT}
    assert main(["import", "cursor", "--yes"]) == 1


def test_import_mentions_servers_of_single_folders(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    put(home, ".claude.json", {"mcpServers": {"git": GIT}, "projects": {"/x": {"mcpServers": {"a": GIT, "b": GIT}}}})
    assert main(["import", "--dry-run", "--json"]) == 0
    assert "has 2 more for single folders" in told(capsys)["hints"][0]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("mcp.json", {"mcpServers": {"git": GIT}}),
        ("some.json", {"servers": {"git": GIT}}),
        ("x.toml", '[mcp_servers.git]\ncommand = "uvx"\nargs = ["mcp-server-git"]\n'),
        ("x.yaml", "extensions:\n  git: {type: stdio, cmd: uvx, args: [mcp-server-git]}\n"),
        ("y.yaml", "mcpServers:\n  - {name: git, command: uvx, args: [mcp-server-git]}\n"),
        ("settings.json", '{"context_servers": {"git": {"command": "uvx", "args": ["mcp-server-git"]}}, /* z */ }'),
        ("opencode.json", {"mcp": {"git": {"type": "local", "command": ["uvx", "mcp-server-git"]}}}),
    ],
)
def test_import_detects_the_client_of_a_named_file(name: str, content: Any, home: Path) -> None:
    file = put(home, f"elsewhere/{name}", content)
    assert main(["import", "--from", str(file), "--yes"]) == 0
    assert own_servers(home) == {"git": GIT}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["import", "cursr"], 'no client is called "cursr". Did you mean cursor?'),
        (["import", "zed"], "there is no file of Zed"),
        (["import", "--from", "/no/such"], "/no/such: no such file"),
        (["install", "emacs"], 'no client is called "emacs"'),
        (["install", "zed", "--http", "ftp://x"], "--http: expected an address"),
        (["undo", "7"], "no change has the number 7"),
    ],
)
def test_a_usage_error_of_a_client_command_is_one_sentence(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*arguments, "--yes"]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("emceepee: ")
    assert words in captured.err
    assert captured.err.count("\n") == 1


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.key)
@pytest.mark.parametrize("flags", [[], ["--http", "http://127.0.0.1:8080/mcp"]], ids=["stdio", "http"])
def test_install_adds_the_entry_of_every_client_once_and_undo_removes_it(
    client: ClientProgram, flags: list[str], home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put(home, ".config/emceepee/config.json", {"mcpServers": {}})
    before = files_of(home)
    assert main(["install", client.key, "--yes", "--json", *flags]) == 0
    facts = told(capsys)
    assert (facts["outcome"], facts["written"]) == ("added", True)
    path = Path(facts["file"])
    assert path in client.user_files({"HOME": str(home)}, "linux")
    assert dict(ClientFile.at(client, path).entries()) == {"emceepee": facts["entry"]}
    assert facts["entry"].items() >= dict(client.load_flags).items()
    assert main(["install", client.key, "--yes", "--json", *flags]) == 0
    again = told(capsys)
    assert (again["outcome"], again["written"]) == ("unchanged", False)
    assert main(["import", client.key, "--dry-run", "--json"]) == 0
    assert {row["outcome"] for row in told(capsys)["servers"]} == {"own"}
    assert main(["undo", "--yes"]) == 0
    assert files_of(home) == before


def test_the_installed_entry_names_the_configuration_file(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own = put(home, ".config/emceepee/config.json", {"mcpServers": {}})
    put(home, ".config/opencode/opencode.json", '{\n  // mine\n  "mcp": {"servers": {}}\n}\n')
    assert main(["install", "opencode", "--yes"]) == 0
    text = (home / ".config/opencode/opencode.json").read_text()
    assert "// mine" in text
    assert json.loads(text.replace("// mine", ""))["mcp"]["servers"]["emceepee"] == {
        "type": "local",
        "command": ["/opt/emceepee", "--config", str(own)],
        "timeout": 60000,
    }


CLINE_IN_VSCODE = ".config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json"
CLINE_CLI = ".cline/data/settings/cline_mcp_settings.json"


@pytest.mark.parametrize(
    ("present", "written", "left_out"),
    [
        ((CLINE_IN_VSCODE, CLINE_CLI), (CLINE_IN_VSCODE, CLINE_CLI), ()),
        ((), (CLINE_IN_VSCODE, CLINE_CLI), ()),
        ((".config/Code/User/settings.json", ".cline/data/state.json"), (CLINE_IN_VSCODE, CLINE_CLI), ()),
        ((CLINE_CLI,), (CLINE_CLI,), (CLINE_IN_VSCODE,)),
        ((".config/Code/User/settings.json",), (CLINE_IN_VSCODE,), (CLINE_CLI,)),
    ],
)
def test_install_cline_writes_the_file_of_each_installed_program(
    present: tuple[str, ...],
    written: tuple[str, ...],
    left_out: tuple[str, ...],
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The VS Code extension and the command line program each read their own file."""
    for place in present:
        put(home, place, {})
    before = files_of(home)
    assert main(["install", "cline", "--yes"]) == 0
    out = capsys.readouterr().out
    for place in (CLINE_IN_VSCODE, CLINE_CLI):
        text = (home / place).read_text() if (home / place).exists() else "{}"
        assert ("emceepee" in json.loads(text).get("mcpServers", {})) == (place in written)
        assert (f"Not written: {home / place}" in out) == (place in left_out)
    assert main(["install", "cline", "--yes", "--json"]) == 0
    facts = told(capsys)
    assert [Path(row["file"]) for row in facts["files"]] == [home / place for place in written]
    assert {row["outcome"] for row in facts["files"]} == {facts["outcome"]} == {"unchanged"}
    assert main(["undo", "--yes"]) == 0
    assert files_of(home) == before


def test_install_claude_code_omits_always_load_and_leaves_the_choice_to_tool_hints(home: Path) -> None:
    """With `alwaysLoad`, Claude loads every tool of emceepee at once, which is two and a half times as much text."""
    earlier = {"type": "stdio", "command": COMMAND[0], "args": [], "alwaysLoad": True}
    put(home, ".claude.json", {"mcpServers": {"emceepee": earlier}})
    assert main(["install", "claude-code", "--yes"]) == 0
    entry = json.loads((home / ".claude.json").read_text())["mcpServers"]["emceepee"]
    assert entry == {"type": "stdio", "command": COMMAND[0], "args": []}


def test_undo_lists_changes_and_refuses_files_that_were_modified_since(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["install", "cursor", "--yes"]) == 0
    capsys.readouterr()
    assert main(["undo", "--list", "--json"]) == 0
    [change] = told(capsys)["changes"]
    assert (change["number"], change["command"]) == (1, "install cursor")
    file = home / ".cursor/mcp.json"
    file.write_text('{"mcpServers": {"emceepee": {"command": "/another"}}}')
    assert main(["undo", "--yes"]) == 1
    assert 'the server "emceepee" in' in capsys.readouterr().err
    assert "/another" in file.read_text()
    assert main(["undo", "1", "--forget", "--yes"]) == 0
    assert main(["undo", "--yes"]) == 0
    assert "There is nothing to undo." in capsys.readouterr().out


def test_undo_shows_the_entries_that_it_removes_from_a_rewritten_file(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Claude Code rewrites its file whenever it runs."""
    file = put(home, ".claude.json", {"theme": "dark", "mcpServers": {"git": GIT}})
    assert main(["import", "claude-code", "--take", "--yes"]) == 0
    assert main(["install", "claude-code", "--yes"]) == 0
    file.write_text(json.dumps(json.loads(file.read_text()) | {"numStartups": 1, "theme": "light"}, indent=2))
    capsys.readouterr()
    assert main(["undo", "--all"]) == 2
    out = capsys.readouterr().out
    assert f"{file} was edited later. Only emceepee's own changes are reverted:" in out
    assert '-    "emceepee": {' in out
    assert '+    "git": {' in out
    assert "numStartups" not in "".join(line for line in out.splitlines() if line.startswith(("+", "-")))
    assert main(["undo", "--all", "--yes", "--json"]) == 0
    assert [facts["byEntry"] for facts in told(capsys)["undone"]] == [[str(file)], [str(file)]]
    assert json.loads(file.read_text()) == {"theme": "light", "mcpServers": {"git": GIT}, "numStartups": 1}
    assert not (home / ".config").exists()


def test_imported_servers_are_added_in_the_format_of_the_existing_file(home: Path) -> None:
    put(home, ".cursor/mcp.json", {"mcpServers": {"git": GIT}})
    listed = put(home, "listed.json", {"servers": [{"name": "a", "url": "http://a"}], "limits": {}})
    assert main(["import", "--yes", "--config", str(listed)]) == 0
    assert json.loads(listed.read_text()) == {
        "servers": [{"name": "a", "url": "http://a"}, {"name": "git", **GIT}],
        "limits": {},
    }
    mapped = put(home, "mapped.json", {"servers": {"a": {"url": "http://a"}}})
    assert main(["import", "--yes", "--config", str(mapped)]) == 0
    assert json.loads(mapped.read_text()) == {"servers": {"a": {"url": "http://a"}, "git": GIT}}


def test_color_is_used_only_on_terminals_and_unless_it_is_disabled() -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    assert Paint.of(Terminal(), {}).bad("x") == "\x1b[31mx\x1b[0m"
    assert Paint.of(Terminal(), {"NO_COLOR": "1"}).bad("x") == "x"
    assert Paint.of(Terminal(), {"TERM": "dumb"}).bad("x") == "x"
    assert Paint.of(io.StringIO(), {}).bad("x") == "x"
    assert Paint(is_on=False).diff("+ \x1b[2J\n") == "+ \N{REPLACEMENT CHARACTER}[2J\n"
