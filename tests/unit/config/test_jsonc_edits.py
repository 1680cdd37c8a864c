"""Editing JSON with comments preserves everything else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.config.document_errors import BadDocument
from emceepee.config.jsonc_edits import put, read, remove

COMMENTED = """\
// My servers.
{
    /* the theme */ "theme": "dark", // at night
    "mcpServers": {
        // files of mine
        "files": { "command": "npx" }, // slow
        "git": {
            "command": "uvx" // and quick
        } // the last one
    },
}
"""


def test_a_jsonc_entry_is_inserted_after_the_last_one_and_comments_stay() -> None:
    assert put(COMMENTED, ["mcpServers"], "new", {"url": "http://x"}) == COMMENTED.replace(
        "        } // the last one\n",
        '        }, // the last one\n        "new": {\n            "url": "http://x"\n        }\n',
    )


def test_a_missing_jsonc_key_is_created_after_a_trailing_comma() -> None:
    assert put(COMMENTED, ["servers"], "a", 1) == COMMENTED.replace(
        "    },\n}", '    },\n    "servers": {\n        "a": 1\n    },\n}'
    )


def test_a_jsonc_entry_of_the_same_name_is_replaced_in_place() -> None:
    changed = put(COMMENTED, ["mcpServers"], "files", {"url": "http://x"})
    assert changed == COMMENTED.replace('{ "command": "npx" }', '{\n            "url": "http://x"\n        }')


def test_removed_jsonc_entries_take_their_lines_and_no_comments_with_them() -> None:
    without = remove(COMMENTED, ["mcpServers"], ["git", "files"])
    assert read(without) == {"theme": "dark", "mcpServers": {}}
    for comment in (
        "// My servers.",
        "/* the theme */",
        "// at night",
        "// files of mine",
        "// slow",
        "// the last one",
    ):
        assert comment in without


def test_removing_the_last_jsonc_entry_removes_the_comma_before_it() -> None:
    text = '{\n  "a": 1,\n  "b": 2\n}\n'
    assert remove(text, [], ["b"]) == '{\n  "a": 1\n}\n'
    assert remove(text, [], ["a"]) == '{\n  "b": 2\n}\n'
    assert remove(text, ["nowhere"], ["a"]) == text


def test_one_line_of_jsonc_stays_one_line() -> None:
    assert put('{"mcpServers": {"a": {}}}', ["mcpServers"], "b", {"url": "x"}) == (
        '{"mcpServers": {"a": {}, "b": {"url": "x"}}}'
    )
    assert remove('{"a": 1, "b": 2}', [], ["a"]) == '{ "b": 2}'


@pytest.mark.parametrize("text", ["", "  \n", "{}", "{ }\n", "\ufeff{}", "// only words\n{\n}\n"])
def test_an_empty_jsonc_file_gets_its_first_entry(text: str) -> None:
    changed = put(text, ["mcp", "servers"], "a", {"x": [1]})
    assert read(changed) == {"mcp": {"servers": {"a": {"x": [1]}}}}
    assert changed.startswith("\ufeff") == text.startswith("\ufeff")
    assert ("// only words" in changed) == ("// only words" in text)


def test_jsonc_edits_use_the_line_breaks_and_indentation_of_the_file() -> None:
    changed = put('{\r\n\t"a": {\r\n\t\t"b": 1\r\n\t}\r\n}\r\n', ["a"], "c", {"d": 2})
    assert changed == '{\r\n\t"a": {\r\n\t\t"b": 1,\r\n\t\t"c": {\r\n\t\t\t"d": 2\r\n\t\t}\r\n\t}\r\n}\r\n'


def test_comment_markers_inside_a_json_string_are_text() -> None:
    text = '{"url": "http://x/*y*/", "glob": "a,]"}'
    assert read(text) == {"url": "http://x/*y*/", "glob": "a,]"}
    assert read(put(text, [], "z", "// no"))["z"] == "// no"


@pytest.mark.parametrize("text", ['{"a": }', '{"a" 1}', "[1,", '{"a": 1 "b": 2}', "nonsense", "[" * 100_000])
def test_invalid_json_is_rejected_by_edits(text: str) -> None:
    with pytest.raises(BadDocument, match="not valid JSON"):
        put(text, ["mcpServers"], "a", {})


def test_a_jsonc_path_that_is_not_an_object_is_named_in_the_error() -> None:
    with pytest.raises(BadDocument, match="mcpServers: expected an object"):
        put('{"mcpServers": [1]}', ["mcpServers"], "a", {})


NAMES = st.text(max_size=6)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
NOISE = st.sampled_from([" ", "\n", "  // words, { \n", '/* [ " */', "\t", "\r\n"])


@st.composite
def documents(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    """Return JSON with random whitespace and comments, and the servers in it."""
    servers: dict[str, Any] = draw(st.dictionaries(NAMES, VALUES, max_size=4))
    trailing = [","] if draw(st.booleans()) else []
    pieces = ["{", '"before"', ":", "1", ",", '"mcpServers"', ":", "{"]
    for index, (name, value) in enumerate(servers.items()):
        indent = draw(st.none() | st.just(2))
        pieces += [*([","] if index else []), json.dumps(name), ":", json.dumps(value, indent=indent)]
    pieces += [*(trailing if servers else []), "}", *trailing, "}"]
    return "".join(piece + "".join(draw(st.lists(NOISE, max_size=2))) for piece in pieces), servers


@given(document=documents(), name=NAMES, value=VALUES)
def test_any_jsonc_document_reads_as_edited(document: tuple[str, dict[str, Any]], name: str, value: Any) -> None:
    text, servers = document
    assert read(text) == {"before": 1, "mcpServers": servers}
    changed = put(text, ["mcpServers"], name, value)
    assert read(changed) == {"before": 1, "mcpServers": {**servers, name: value}}
    gone = set(list(servers)[::2])
    left = {key: item for key, item in servers.items() if key not in gone}
    assert read(remove(text, ["mcpServers"], gone)) == {"before": 1, "mcpServers": left}


LIST = """\
{"list": [
  1, // one
  [2, /* two */ 22],
  {"a": [3]} // three
]}
"""


def test_a_jsonc_list_is_addressed_by_index() -> None:
    assert put(LIST, ["list"], 0, 10) == LIST.replace("1, // one", "10, // one")
    assert put(LIST, ["list", 1], 1, 23) == LIST.replace("22", "23")
    assert put(LIST, ["list", 2, "a"], 1, 4) == LIST.replace("[3]", "[3, 4]")
    assert put(LIST, ["list"], 3, 4) == LIST.replace('{"a": [3]} // three\n', '{"a": [3]}, // three\n  4\n')
    assert remove(LIST, ["list"], [0, 2]) == LIST.replace("  1, // one", "   // one").replace(
        ' 22],\n  {"a": [3]} // three', " 22]\n   // three"
    )
    assert remove(LIST, ["list", 2], ["a"]) == LIST.replace('{"a": [3]}', "{}")
    assert remove(LIST, ["list", 7], ["a"]) == LIST


@pytest.mark.parametrize(("path", "name"), [(["list", "a"], "b"), ([0], "b"), (["list", 0], 0), (["list"], "a")])
def test_a_jsonc_path_step_of_the_wrong_kind_is_rejected(path: list[str | int], name: str | int) -> None:
    with pytest.raises(BadDocument, match="expected"):
        put(LIST, path, name, 1)
