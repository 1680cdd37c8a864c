from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.search.documents import EntryType
from emceepee.search.index import MANY_WRITES, SearchIndex
from emceepee.wire.json_types import JsonObject

TOOLS = (EntryType.TOOL,)


@pytest.fixture
def index() -> Iterator[SearchIndex]:
    index = SearchIndex()
    yield index
    index.close()


def put(index: SearchIndex, *entries: JsonObject, server: str = "a", entry_type: EntryType = EntryType.TOOL) -> None:
    with index.changing():
        for _ in index.replace(entry_type, server, entries):
            pass


def tool(name: str, description: str = "", **arguments: str) -> JsonObject:
    properties = {key: {"description": text} for key, text in arguments.items()}
    return {"name": name, "description": description, "inputSchema": {"properties": properties}}


def found(index: SearchIndex, query: str, types: Any = TOOLS, **where: Any) -> list[str]:
    return [hit.document.name for hit in index.search(query, types, **where)]


def test_a_name_match_ranks_above_a_description_match_and_that_above_an_argument_match(
    index: SearchIndex,
) -> None:
    put(
        index,
        tool("third", "one two three four", x="invoice two three four"),
        tool("second", "invoice two three four", x="one two three four"),
        tool("invoice", "one two three four", x="one two three four"),
        tool("other", "one two three four", x="one two three four"),
        tool("another", "one two three four", x="one two three four"),
        tool("yet_another", "one two three four", x="one two three four"),
        tool("last", "one two three four", x="one two three four"),
    )
    assert found(index, "invoice") == ["invoice", "second", "third"]


def test_stems_prefixes_typos_and_synonyms_match_in_a_search(index: SearchIndex) -> None:
    put(index, tool("delete_repository", "Gone for good"), tool("sendMail", "To someone"), tool("weather", "Rain?"))
    for query in ("deleting", "repo", "repositroy", "remove", "DeleteRepositories"):
        assert found(index, query) == ["delete_repository"], query
    assert found(index, "email") == ["sendMail"]


def test_an_exact_word_ranks_above_its_synonym(index: SearchIndex) -> None:
    put(index, tool("delete_note"), tool("remove_note"), tool("weather"), tool("clock"), tool("map"))
    assert found(index, "remove note") == ["remove_note", "delete_note"]
    assert found(index, "delete note") == ["delete_note", "remove_note"]


def test_without_synonyms_only_the_exact_words_match() -> None:
    index = SearchIndex(with_synonyms=False)
    put(index, tool("delete_note"))
    assert found(index, "remove") == []
    index.close()


def test_a_search_can_be_limited_to_types_and_servers(index: SearchIndex) -> None:
    put(index, tool("read_notes"))
    put(index, tool("write_notes"), server="b")
    put(index, {"uri": "file:///notes", "name": "notes"}, entry_type=EntryType.RESOURCE)
    assert found(index, "notes") == ["read_notes", "write_notes"]
    assert found(index, "notes", servers=("b",)) == ["write_notes"]
    assert found(index, "notes", servers=("nobody",)) == []
    assert found(index, "notes", (EntryType.RESOURCE,)) == ["file:///notes"]
    assert len(found(index, "notes", tuple(EntryType))) == 3


def test_a_rare_entry_type_is_found_among_very_many_entries_of_another(index: SearchIndex) -> None:
    put(index, *(tool(f"notes_{number}") for number in range(500)))
    put(index, {"name": "notes"}, entry_type=EntryType.PROMPT)
    assert found(index, "notes", (EntryType.PROMPT,)) == ["notes"]


def test_adding_one_tool_writes_one_index_entry(index: SearchIndex) -> None:
    many = [tool(f"tool_{number}", "does things") for number in range(MANY_WRITES + 50)]
    put(index, *many)
    before = index.writes
    put(index, *many, tool("newest", "does things"))
    assert index.writes - before == 1
    assert found(index, "newest") == ["newest"]


def test_a_changed_entry_is_found_by_its_new_words_only(index: SearchIndex) -> None:
    put(index, tool("t", "about ships"), tool("other"))
    put(index, tool("t", "about trains"), tool("other"))
    assert (found(index, "ships"), found(index, "trains"), len(index)) == ([], ["t"], 2)


def test_removed_entries_and_servers_are_not_found(index: SearchIndex) -> None:
    put(index, tool("ships"), tool("trains"))
    put(index, tool("ships_of_b"), server="b")
    put(index, tool("trains"))
    assert found(index, "ships") == ["ships_of_b"]
    index.remove("b")
    assert (found(index, "ships"), len(index), index.servers()) == ([], 1, {"a"})


def test_of_two_entries_with_the_same_name_the_last_is_indexed_and_one_without_a_name_is_not(
    index: SearchIndex,
) -> None:
    put(index, tool("t", "first"), tool("t", "second"), {"description": "second"}, {"name": ["second"]})
    assert (found(index, "second"), found(index, "first"), len(index)) == (["t"], [], 1)


@pytest.mark.parametrize(
    "query",
    ['"', '" OR "', "name:x", "x*", "NEAR(a b)", "NOT", "AND OR NOT", "a AND", "-a", "^a", "(", "{a b}: c", "'; DROP"],
)
def test_a_search_query_is_words_and_never_syntax(index: SearchIndex, query: str) -> None:
    put(index, tool("unrelated", "zzz"), server="zzz")
    assert found(index, query) == []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=10,
)
entries = st.lists(
    st.fixed_dictionaries(
        {},
        optional={
            "name": json_values,
            "title": json_values,
            "description": st.text(),
            "annotations": json_values,
            "arguments": json_values,
            "inputSchema": st.fixed_dictionaries({"properties": st.dictionaries(st.text(), json_values, max_size=3)}),
        },
    ),
    max_size=4,
)


@given(entries, entries, st.text(), st.sampled_from(EntryType))
def test_no_entry_and_no_query_breaks_the_index(
    before: list[JsonObject], after: list[JsonObject], query: str, entry_type: EntryType
) -> None:
    index = SearchIndex()
    put(index, *before, entry_type=entry_type)
    put(index, *after, entry_type=entry_type)
    for text in (query, *(str(entry.get("description")) for entry in after)):
        index.search(text, tuple(EntryType))
        index.search(text, (entry_type,), servers=("a",))
    assert len(index) == len(list(index.documents((entry_type,))))
    index.remove("a")
    assert len(index) == 0
    index.close()


@given(st.text(min_size=3, max_size=12, alphabet=st.characters(categories=["Ll", "Nd"])))
def test_an_entry_in_any_script_is_found_by_its_own_name(name: str) -> None:
    index = SearchIndex()
    put(index, tool(name), tool("zzzz zzz"))
    assert name in found(index, name)
    index.close()
