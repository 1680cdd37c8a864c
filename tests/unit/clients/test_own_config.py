"""Editing our own configuration file in each of its formats."""

import json
from pathlib import Path
from typing import Any

import pytest

from emceepee.clients.own_config import OwnConfig
from emceepee.config.document_errors import BadDocument

GIT: dict[str, Any] = {"command": "git"}
SHAPES = [
    {"mcpServers": {"git": GIT, "web": {"url": "https://x"}}},
    {"servers": {"git": GIT, "web": {"url": "https://x"}}},
    {"servers": [{"name": "git", **GIT}, {"name": "web", "url": "https://x"}]},
]


def own(content: object) -> OwnConfig:
    text = content if isinstance(content, str) else json.dumps(content, indent=2)
    return OwnConfig(path=Path("/x/config.json"), content=text.encode())


def edited(content: bytes) -> dict[str, Any]:
    return own(content.decode()).servers()


@pytest.mark.parametrize("document", SHAPES, ids=["mcpServers", "object", "list"])
def test_a_server_is_disabled_enabled_and_removed_in_every_file_format(document: dict[str, Any]) -> None:
    disabled = own(document).with_setting("git", "disabled", True)
    assert edited(disabled)["git"] == GIT | {"disabled": True}
    enabled = own(disabled.decode()).with_setting("git", "disabled", None)
    assert edited(enabled) == own(document).servers()
    assert edited(own(document).without("git")).keys() == {"web"}


def test_comments_in_a_server_entry_survive_disabling_and_enabling() -> None:
    text = '{"mcpServers": {\n  "git": {\n    // the one\n    "command": "git" // by name\n  }\n}}'
    disabled = own(text).with_setting("git", "disabled", True).decode()
    assert "// the one" in disabled
    assert "// by name" in disabled
    assert own(disabled).with_setting("git", "disabled", None).decode() == text


LIST = """\
{
  "servers": [
    // the one
    {
      "name": "git", // by name
      "command": "git"
    }, // after it
    { "name": "web", "url": "https://x" }, // on the way
    // the end
  ]
}
"""


def test_comments_in_a_list_of_servers_survive_edits() -> None:
    disabled = own(LIST).with_setting("git", "disabled", True).decode()
    assert disabled == LIST.replace('"command": "git"\n', '"command": "git",\n      "disabled": true\n')
    assert own(disabled).with_setting("git", "disabled", None).decode() == LIST
    assert own(LIST).with_setting("web", "url", "https://y").decode() == LIST.replace("https://x", "https://y")
    added = own(LIST).with_servers([("time", {"command": "time"})]).decode()
    assert added == LIST.replace(
        "// on the way\n", '// on the way\n    {\n      "name": "time",\n      "command": "time"\n    },\n'
    )
    without = own(added).without("git").decode()
    assert edited(without.encode()).keys() == {"web", "time"}
    for comment in ("// the one", "// after it", "// on the way", "// the end"):
        assert comment in without


def test_servers_are_added_to_lists_that_are_empty_or_on_one_line() -> None:
    for text in ('{"servers": []}', '{"servers": [{"name": "git", "command": "git"}]}'):
        added = own(text).with_servers([("a", {"command": "a"}), ("b", {"command": "b"})])
        assert list(edited(added))[-2:] == ["a", "b"]
    assert own('{"servers": [{"name": "git", "command": "git"}]}').without("git") == b'{"servers": []}'


def test_a_configuration_file_that_is_not_utf_8_is_reported() -> None:
    with pytest.raises(BadDocument, match="not UTF-8 text"):
        OwnConfig(path=Path("/x"), content=b"\xff\xfe").servers()
