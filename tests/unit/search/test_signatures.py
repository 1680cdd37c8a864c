from typing import Any

from emceepee.search.documents import Document, EntryType
from emceepee.search.signatures import DASH, MOST_LOOKED_AT, MOST_SHOWN, signature


def a_tool(properties: Any, required: Any = None, **entry: Any) -> Document:
    schema = {"type": "object", "properties": properties, "required": required}
    return Document(EntryType.TOOL, "github", {"name": "create_issue", "inputSchema": schema} | entry)


def test_a_tool_signature_lists_required_arguments_first() -> None:
    document = a_tool({"body": {}, "owner": {}, "repo": {}}, ["owner", "repo"], description="Open an issue. Really.")
    assert signature(document) == f"github.create_issue(owner, repo, body?) {DASH} Open an issue."


def test_a_tool_signature_uses_the_module_name_for_scripts() -> None:
    assert signature(a_tool({"zone": {}}), module="github_") == "github_.create_issue(zone?)"


def test_a_tool_signature_ends_with_the_observed_result_shape() -> None:
    assert signature(a_tool({}), "{id: int}") == "github.create_issue() → {id: int}"


def test_prompts_resources_and_servers_have_a_signature_as_well() -> None:
    arguments = [{"name": "tone"}, {"name": "text", "required": True}, 5]
    prompt = Document(EntryType.PROMPT, "a", {"name": "p", "arguments": arguments})
    resource = Document(EntryType.RESOURCE, "a", {"uri": "file:///x", "name": "X", "title": "The X"})
    server = Document(EntryType.SERVER, "a", {"name": "a", "description": "Things"})
    assert [signature(entry) for entry in (prompt, resource, server)] == [
        "a.p(text, tone?)",
        f"a file:///x {DASH} The X",
        f"a {DASH} Things",
    ]


def test_an_invalid_schema_gives_a_signature_without_arguments() -> None:
    for properties, required in ((None, None), ([], []), ({}, "x"), ({}, [["y"], None])):
        assert signature(a_tool(properties, required)) == "github.create_issue()"


def test_a_signature_reads_only_the_first_of_very_many_arguments() -> None:
    many: dict[str, object] = {f"a{number}": {} for number in range(MOST_LOOKED_AT + 1)}
    assert signature(a_tool(many, [f"a{MOST_LOOKED_AT - 1}"])).startswith(
        f"github.create_issue(a{MOST_LOOKED_AT - 1}, a0?"
    )
    assert signature(a_tool(many, [f"a{MOST_LOOKED_AT}"])).startswith("github.create_issue(a0?")


def test_the_signature_of_a_huge_or_hostile_entry_is_one_short_line() -> None:
    many: dict[str, object] = {f"argument{number}" * 20: {} for number in range(1000)}
    line = signature(a_tool(many, description="\x1b[31m\u202e" + "x" * 1_000_000))
    assert line.isprintable()
    assert len(line) < 2000
    assert line.count("?") == MOST_SHOWN
