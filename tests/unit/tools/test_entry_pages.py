import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.errors import InvalidArguments
from emceepee.tools.entry_pages import Detailed, Entries, Paged, described, fields, page
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

KIND = Entries("list_things", "items", "name", described)
MANY = 100_000


def things(*names: str, server: str = "one") -> list[JsonObject]:
    return [{"server": server, "name": name, "description": f"about {name}"} for name in names]


ENTRIES = things(*"gfedcba")


def listed(entries: list[JsonObject], *, room: int = MANY, **params: Any) -> JsonObject:
    return page(entries, Detailed(**params), KIND, room=room)


def names_in(result: JsonObject) -> list[str]:
    return [entry["name"] for entry in result["items"]]


@given(
    st.lists(st.text(max_size=4), max_size=20),
    st.integers(min_value=1, max_value=25),
    st.integers(min_value=1, max_value=400),
)
def test_the_pages_of_a_list_together_are_the_list(names: list[str], limit: int, room: int) -> None:
    entries = things(*names)
    seen, cursor = list[str](), None
    for _ in range(len(entries) + 1):
        result = listed(entries, limit=limit, cursor=cursor, room=room)
        assert len(result["items"]) <= limit
        seen += names_in(result)
        cursor = result.get("nextCursor")
        assert result.get("remaining", 0) == len(entries) - len(seen)
        if cursor is None:
            break
    assert sorted(seen) == sorted(names)
    assert cursor is None


NAMES = st.sets(st.sampled_from("abcdefghijklmnop"), max_size=16)


@given(st.lists(NAMES, min_size=2, max_size=12), st.integers(min_value=1, max_value=5))
def test_a_permanent_entry_is_listed_once_while_others_change_between_pages(lists: list[set[str]], limit: int) -> None:
    stays = set.intersection(*lists)
    seen, cursor = list[str](), None
    for names in lists + [lists[-1]] * 20:
        result = listed(things(*sorted(names, reverse=True)), limit=limit, cursor=cursor)
        seen += names_in(result)
        cursor = result.get("nextCursor")
        if cursor is None:
            break
    counted = {name: seen.count(name) for name in stays}
    if set(seen) and cursor is None:
        assert all(count == 1 for count in counted.values()), (lists, seen)
    assert len(seen) == len(set(seen))


def test_a_list_that_fits_is_one_page_in_its_own_order() -> None:
    assert listed(ENTRIES) == {"items": ENTRIES}


def test_the_last_full_page_has_no_next_cursor() -> None:
    assert "nextCursor" not in listed(ENTRIES, limit=7)
    assert "nextCursor" in listed(ENTRIES, limit=6)


def test_a_list_that_is_too_large_names_the_remaining_entries_and_the_cursor() -> None:
    result = listed(ENTRIES, room=150)
    assert len(encode(result["items"])) <= 150
    assert (names_in(result), result["remaining"]) == (["a", "b"], 5)
    assert result["note"] == "A reply has at most 150 bytes. list_things(cursor=…) returns more."
    assert names_in(listed(ENTRIES, cursor=result["nextCursor"])) == list("cdefg")


def test_one_entry_is_returned_however_large_it_is() -> None:
    assert len(listed(things("a" * 500, "b" * 500), room=100)["items"]) == 1


def test_the_detail_argument_reduces_the_fields_of_each_entry() -> None:
    assert listed(ENTRIES[:1], detail="names") == {"items": [{"server": "one", "name": "g"}]}
    assert listed(ENTRIES[:1], detail="summary")["items"][0]["summary"] == "about g"
    record = Entries("list_records", "items", "id", fields("text", "gone"))
    assert page([{"id": 1, "text": "x" * 200, "more": 1}], Detailed(detail="summary"), record, room=MANY)["items"] == [
        {"id": 1, "text": "x" * 119 + "…"}
    ]


@pytest.mark.parametrize("cursor", ["", "x", "!!!!", "ä", "bm8=", "MTI", "W10", "WyJhIl0"])
def test_an_invented_cursor_is_rejected_with_advice(cursor: str) -> None:
    with pytest.raises(InvalidArguments, match="cursor: pass on the nextCursor of an earlier reply"):
        page(ENTRIES, Paged(cursor=cursor), KIND, room=MANY)


def test_a_cursor_after_the_end_gives_an_empty_page() -> None:
    first = listed(ENTRIES, limit=6)
    assert listed(things("a"), cursor=first["nextCursor"]) == {"items": []}
    assert json.loads(json.dumps(first["nextCursor"])) == first["nextCursor"]
