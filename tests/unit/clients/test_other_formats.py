"""Editing TOML and YAML preserves comments, quotes, and order."""

import pytest

from emceepee.clients import toml_edits, yaml_edits
from emceepee.config.document_errors import BadDocument

CODEX = """\
model = "o9" # the good one

[mcp_servers.git] # mine
command = "uvx"
args = ["mcp-server-git"]

[mcp_servers.git.env]
A = '1'

[tui]
theme = "dark"
"""
GOOSE = """\
# where I keep things
GOOSE_MODEL: "o9"   # quoted

extensions:
    developer:
        type: builtin   # comes with it
    git:
        cmd: uvx
        args:
            - mcp-server-git
"""
CONTINUE = """\
name: Mine
models:
  - name: o9   # the good one
    roles: [chat]
mcpServers:
  # of work
  - name: git
    command: uvx
"""


def test_a_toml_table_is_added_and_removed_again() -> None:
    entry = {"command": "emceepee", "args": ["--config", "x"], "env": {"B": "2"}}
    added = toml_edits.put(CODEX, ["mcp_servers"], "emceepee", entry)
    assert toml_edits.read(added)["mcp_servers"]["emceepee"] == entry
    for line in CODEX.splitlines():
        assert line in added
    gone = toml_edits.remove(added, ["mcp_servers"], ["git", "emceepee", "never"])
    assert toml_edits.read(gone) == {"model": "o9", "tui": {"theme": "dark"}} | (
        {"mcp_servers": {}} if "mcp_servers" in gone else {}
    )
    assert 'model = "o9" # the good one' in gone


def test_an_empty_toml_file_gets_a_table() -> None:
    assert toml_edits.put("", ["mcp_servers"], "a", {"url": "x"}) == '[mcp_servers.a]\nurl = "x"\n'
    assert toml_edits.remove("", ["mcp_servers"], ["a"]) == ""


def test_a_yaml_mapping_is_added_and_removed_again() -> None:
    added = yaml_edits.put(GOOSE, ["extensions"], "emceepee", {"cmd": "emceepee", "args": ["--config", "x"]})
    assert yaml_edits.read(added)["extensions"]["emceepee"] == {"cmd": "emceepee", "args": ["--config", "x"]}
    assert added.startswith(GOOSE)
    gone = yaml_edits.remove(added, ["extensions"], ["git", "emceepee"])
    assert yaml_edits.read(gone) == {"GOOSE_MODEL": "o9", "extensions": {"developer": {"type": "builtin"}}}


def test_a_yaml_list_item_is_added_replaced_and_removed() -> None:
    item = {"name": "emceepee", "command": "emceepee"}
    added = yaml_edits.put(CONTINUE, ["mcpServers"], "emceepee", item, as_list=True)
    assert added == CONTINUE + "  - name: emceepee\n    command: emceepee\n"
    other = {"name": "git", "command": "x"}
    replaced = yaml_edits.put(added, ["mcpServers"], "git", other, as_list=True)
    assert yaml_edits.read(replaced)["mcpServers"] == [other, item]
    assert yaml_edits.remove(added, ["mcpServers"], ["emceepee"]) == CONTINUE


def test_a_yaml_list_or_mapping_is_created_in_an_empty_file() -> None:
    assert yaml_edits.read(yaml_edits.put("", ["extensions"], "a", {"cmd": "x"})) == {"extensions": {"a": {"cmd": "x"}}}
    made = yaml_edits.put("name: Mine\n", ["mcpServers"], "a", {"name": "a"}, as_list=True)
    assert made == "name: Mine\nmcpServers:\n  - name: a\n"


def test_an_invalid_toml_or_yaml_file_is_rejected() -> None:
    with pytest.raises(BadDocument, match="not valid TOML"):
        toml_edits.put("= 1", ["a"], "b", {})
    with pytest.raises(BadDocument, match="not valid YAML"):
        yaml_edits.put("a: [", ["a"], "b", {})
    with pytest.raises(BadDocument, match="expected"):
        yaml_edits.put("extensions: 5\n", ["extensions"], "b", {})
    with pytest.raises(BadDocument, match="expected a table"):
        toml_edits.put("mcp_servers = 5\n", ["mcp_servers"], "b", {})
