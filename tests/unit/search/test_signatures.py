from typing import Any

from emceepee.search.documents import Document, EntryType
from emceepee.search.signatures import DASH, MOST_LOOKED_AT, MOST_SHOWN, signature


def a_tool(properties: Any, required: Any = None, **entry: Any) -> Document:
    schema = {"type": "object", "properties": properties, "required": required}
    return Document(EntryType.TOOL, "github", {"name": "create_issue", "inputSchema": schema} | entry)


def test_a_tool_is_written_as_a_call_with_what_it_needs_first() -> None:
    document = a_tool({"body": {}, "owner": {}, "repo": {}}, ["owner", "repo"], description="Open an issue. Really.")
    assert signature(document) == f"github.create_issue(owner, repo, body?) {DASH} Open an issue."


def test_a_server_is_written_as_scripts_import_it() -> None:
    assert signature(a_tool({"zone": {}}), module="github_") == "github_.create_issue(zone?)"


def test_what_a_tool_returned_before_stands_behind_it() -> None:
    assert signature(a_tool({}), "{id: int}") == "github.create_issue() → {id: int}"


def test_other_entries_are_written_by_what_they_are_used_with() -> None:
    arguments = [{"name": "tone"}, {"name": "text", "required": True}, 5]
    prompt = Document(EntryType.PROMPT, "a", {"name": "p", "arguments": arguments})
    resource = Document(EntryType.RESOURCE, "a", {"uri": "file:///x", "name": "X", "title": "The X"})
    server = Document(EntryType.SERVER, "a", {"name": "a", "description": "Things"})
    assert [signature(entry) for entry in (prompt, resource, server)] == [
        "a.p(text, tone?)",
        f"a file:///x {DASH} The X",
        f"a {DASH} Things",
    ]


def test_a_schema_that_is_none_has_no_arguments() -> None:
    for properties, required in ((None, None), ([], []), ({}, "x"), ({}, [["y"], None])):
        assert signature(a_tool(properties, required)) == "github.create_issue()"


def test_of_very_many_arguments_only_the_first_are_read() -> None:
    many: dict[str, object] = {f"a{number}": {} for number in range(MOST_LOOKED_AT + 1)}
    assert signature(a_tool(many, [f"a{MOST_LOOKED_AT - 1}"])).startswith(
        f"github.create_issue(a{MOST_LOOKED_AT - 1}, a0?"
    )
    assert signature(a_tool(many, [f"a{MOST_LOOKED_AT}"])).startswith("github.create_issue(a0?")


def test_a_huge_or_hostile_entry_is_one_short_line() -> None:
    many: dict[str, object] = {f"argument{number}" * 20: {} for number in range(1000)}
    line = signature(a_tool(many, description="\x1b[31m\u202e" + "x" * 1_000_000))
    assert line.isprintable()
    assert len(line) < 2000
    assert line.count("?") == MOST_SHOWN
