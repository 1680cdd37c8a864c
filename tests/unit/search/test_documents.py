from typing import Any

from emceepee.search.documents import LONGEST_NAME, LONGEST_TEXT, Document, EntryType, Fields


def test_a_tool_is_indexed_by_its_names_texts_and_arguments() -> None:
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


def test_a_resource_is_identified_by_its_uri_and_indexed_by_its_name() -> None:
    resource = Document(EntryType.RESOURCE, "a", {"uri": "file:///notes", "name": "Notes", "title": "My notes"})
    template = Document(EntryType.TEMPLATE, "a", {"uriTemplate": "file:///{x}", "name": "Any"})
    assert (resource.name, resource.fields().title) == ("file:///notes", "Notes My notes")
    assert (template.name, template.fields().title) == ("file:///{x}", "Any ")


def test_an_entry_with_an_unusable_name_has_none() -> None:
    names: list[Any] = [None, 5, [], "", "x" * (LONGEST_NAME + 1)]
    assert [Document(EntryType.TOOL, "a", {"name": name}).name for name in names] == [""] * 5


def test_an_endless_schema_is_indexed_in_part() -> None:
    endless: Any = {}
    endless["properties"] = {"again": endless}
    wide = {"properties": {f"p{number}": {"description": "x" * 1000} for number in range(100_000)}}
    for schema in (endless, wide):
        fields = Document(EntryType.TOOL, "a", {"name": "t", "inputSchema": schema}).fields()
        assert len(fields.arguments) <= LONGEST_TEXT
        assert len(fields.argument_texts) <= LONGEST_TEXT
