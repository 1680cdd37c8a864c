from typing import Any

from emceepee.search.documents import LONGEST_NAME, LONGEST_TEXT, Document, EntryType, Fields


def test_a_tool_is_found_by_its_names_texts_and_arguments() -> None:
    schema = {
        "properties": {
            "repo": {"description": "Which one"},
            "labels": {"items": {"properties": {"color": {"enum": ["red", 5]}}}},
        }
    }
    entry = {"name": "create", "description": "Make", "annotations": {"title": "Creator"}, "inputSchema": schema}
    assert Document(EntryType.TOOL, "github", entry).fields() == Fields(
        name="create",
        title="Creator",
        description="Make",
        arguments="repo labels color",
        argument_texts="Which one   red ",
        server="github",
    )


def test_a_resource_is_used_by_its_address_and_found_by_its_name_too() -> None:
    resource = Document(EntryType.RESOURCE, "a", {"uri": "file:///notes", "name": "Notes", "title": "My notes"})
    template = Document(EntryType.TEMPLATE, "a", {"uriTemplate": "file:///{x}", "name": "Any"})
    assert (resource.name, resource.fields().title) == ("file:///notes", "Notes My notes")
    assert (template.name, template.fields().title) == ("file:///{x}", "Any ")


def test_what_cannot_be_used_by_its_name_has_none() -> None:
    names: list[Any] = [None, 5, [], "", "x" * (LONGEST_NAME + 1)]
    assert [Document(EntryType.TOOL, "a", {"name": name}).name for name in names] == [""] * 5


def test_of_a_schema_without_end_some_counts() -> None:
    endless: Any = {}
    endless["properties"] = {"again": endless}
    wide = {"properties": {f"p{number}": {"description": "x" * 1000} for number in range(100_000)}}
    for schema in (endless, wide):
        fields = Document(EntryType.TOOL, "a", {"name": "t", "inputSchema": schema}).fields()
        assert len(fields.arguments) <= LONGEST_TEXT
        assert len(fields.argument_texts) <= LONGEST_TEXT
