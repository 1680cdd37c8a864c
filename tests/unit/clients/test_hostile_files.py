"""Client files that an attacker wrote to harm the importing user."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import pytest

from emceepee.cli.main import main
from emceepee.clients import toml_edits, yaml_edits
from emceepee.clients.changes import FileChange
from emceepee.config import jsonc_edits
from emceepee.config.document_errors import BadDocument
from emceepee.paths import CONFIG_VARIABLE

SECONDS = 12.0  # twice the time limit of a reader
LAUGHS = "a0: &a0 [lol]\n" + "".join(
    f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n" for level in range(1, 12)
)
MERGES = "b0: &b0 {k: v}\n" + "".join(
    f"b{level}: &b{level} {{<<: [{', '.join([f'*b{level - 1}'] * 10)}]}}\n" for level in range(1, 12)
)


def entry(**more: object) -> str:
    return json.dumps({"mcpServers": {"a": {"url": "https://x.test/mcp", **more}}})


REFUSED = {
    "config.yaml": [
        f"{LAUGHS}mcpServers:\n  - name: a\n    url: https://x.test\n    oauth: {{scopes: *a11}}\n",
        "mcpServers:\n  - name: a\n    url: https://x.test\n    oauth: {scopes: &a [*a]}\n",
        "mcpServers:\n  - &a\n    name: a\n    url: https://x.test\n    env: *a\n    oauth: {scopes: *a}\n",
        "mcpServers: " + "[" * 200_000,
        "mcpServers: " + "{a: " * 100_000,
        "- " * 100_000,
        "".join(f"k{number}: 1\n" for number in range(100_000)),
        "".join(f"k{number}: 1\n" for number in range(40_000)),
        "mcpServers:\n  - {name: a, url: !!python/object/apply:os.system [id]}\n",
        "mcpServers:\n  - {name: a, ? [b] : c}\n",
    ],
    "mcp.json": [
        '{"mcpServers": {} ' + "/* " * 66_000,
        '{"mcpServers": ' + '"' + '\\"' * 100_000,
        '{"mcpServers": ' + "," * 200_000,
        "[" * 200_000,
        '{"a": ' * 100_000,
        entry(oauth={"scopes": "a "}).replace('"a "', "[" * 190 + "]" * 190),
        entry(description="long " * 400_000),
        json.dumps({"mcpServers": {f"a{number}": {"command": f"x{number}"} for number in range(2000)}}),
        '{"x": [' + "[]," * 1_100_000 + "[]]}",
        '// "\n{"x": [' + "[]," * 1_100_000 + '[]]} // "',
    ],
    "config.toml": [
        "a=" + "[" * 100_000,
        "a=" + "{a=" * 100_000,
        "mcp_servers." + ".".join("a" * 40_000) + "=1",
        "[mcp_servers." + ".".join("a" * 40_000) + "]",
        "[mcp_servers]\n" + "".join(f"a.b{number}=1\n" for number in range(40_000)),
        "".join(f"k{number}=1\n" for number in range(100_000)),
    ],
}
TAKEN = {
    "config.yaml": [
        f"{MERGES}mcpServers:\n  - {{name: a, command: x}}\n",
        "mcpServers:\n  - &a {<<: *a, name: a, command: x}\n",
        "mcpServers:\n  - {name: a, url: 'https://x.test', oauth: {scopes: [2020-01-01, .nan, 0x10]}}\n",
    ],
    "mcp.json": [
        entry(headers={"K": "${env:" * 150_000}),
        entry(headers={"K": "a-" * 400_000}),
        entry(headers={"K": "https://" * 100_000}),
        json.dumps({"mcpServers": {f"a{number}": {"command": f"x{number}"} for number in range(500)}}),
    ],
    "config.toml": ['[mcp_servers.a]\nurl = "https://x.test"\noauth = {scopes = [inf, 2020-01-01]}\n'],
}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in (CONFIG_VARIABLE, "XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def imported(home: Path, name: str, text: str) -> int:
    (home / name).write_text(text)
    began = perf_counter()
    code = main(["import", "--from", str(home / name), "--yes"])
    assert perf_counter() - began < SECONDS
    return code


def cases(table: dict[str, list[str]]) -> list[object]:
    numbered = [(name, place, text) for name, texts in table.items() for place, text in enumerate(texts)]
    return [pytest.param(name, text, id=f"{name}-{place}") for name, place, text in numbered]


@pytest.mark.parametrize(("name", "text"), cases(REFUSED))
def test_an_excessively_large_or_nested_client_file_is_refused_in_bounded_time(
    name: str, text: str, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported(home, name, text) == 1
    assert f"emceepee: {home / name}: " in capsys.readouterr().err
    assert not (home / ".config").exists()


@pytest.mark.parametrize(("name", "text"), cases(TAKEN))
def test_a_client_file_that_only_looks_excessive_is_imported(name: str, text: str, home: Path) -> None:
    assert imported(home, name, text) == 0
    written = json.loads((home / ".config/emceepee/config.json").read_text(), parse_constant=pytest.fail)
    assert "a" in written["mcpServers"] or "a0" in written["mcpServers"]


@pytest.mark.parametrize("is_there", [True, False])
def test_a_file_named_in_a_client_entry_is_not_opened_before_the_user_agrees(
    is_there: bool, home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a named pipe would block."""
    if is_there:
        os.mkfifo(home / "pipe")
    assert imported(home, "mcp.json", entry(headers={"K": f"${{file:{home}/pipe}}"})) == 0
    words = "is not a regular file" if is_there else "there is no file"
    assert words in capsys.readouterr().out


def test_a_client_file_that_is_not_a_regular_file_is_refused(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(home / "mcp.json")
    for path in (str(home / "mcp.json"), "/dev/zero"):
        assert main(["import", "--from", path, "--dry-run"]) == 1
        assert "it is not a regular file" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("read", "text"),
    [
        *((jsonc_edits.read, text) for text in REFUSED["mcp.json"][:5]),
        *((yaml_edits.read, text) for text in REFUSED["config.yaml"][3:8]),
        *((toml_edits.read, text) for text in REFUSED["config.toml"][:4]),
        (lambda text: yaml_edits.put(text, ["mcpServers"], "a", {}), "a: &a {<<: *a}\n"),
        (lambda text: yaml_edits.put(text, ["mcpServers"], "a", {}), "text"),
        (lambda text: yaml_edits.put(text, ["a", "b"], "a", {}), "a: text"),
    ],
    ids=lambda value: value[:20] if isinstance(value, str) else "",
)
def test_every_client_file_format_is_refused_with_an_explanation(read: Callable[[str], object], text: str) -> None:
    with pytest.raises(BadDocument):
        read(text)


def test_yaml_aliases_are_expanded() -> None:
    text = "base: &base {env: {A: one}, command: x}\nmcpServers:\n  a: {<<: *base, command: y}\n  b: *base\n"
    found = yaml_edits.read(text)["mcpServers"]
    assert found == {"a": {"env": {"A": "one"}, "command": "y"}, "b": {"env": {"A": "one"}, "command": "x"}}


def test_a_change_in_too_many_places_is_not_compared_line_by_line() -> None:
    before, after = ("".join(f"{number % modulus}\n" for number in range(60_000)) for modulus in (997, 991))
    began = perf_counter()
    shown = FileChange(path=Path("x"), before=before.encode(), after=after.encode()).diff()
    assert perf_counter() - began < SECONDS
    assert shown == "--- x\n+++ x\n@@ too many lines to show @@\n"
