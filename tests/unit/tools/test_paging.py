import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.errors import InvalidArguments
from emceepee.json_types import JsonObject
from emceepee.sessions.listing import Listing
from emceepee.tools.paging import Paged, page

ENTRIES: list[JsonObject] = [{"n": number} for number in range(7)]


@given(st.lists(st.integers(), max_size=30), st.integers(min_value=1, max_value=40))
def test_the_pages_together_are_the_list(numbers: list[int], limit: int) -> None:
    entries: list[JsonObject] = [{"n": number} for number in numbers]
    seen, cursor = list[JsonObject](), None
    for _ in range(len(entries) + 1):
        result = page("items", Listing(entries), Paged(limit=limit, cursor=cursor))
        seen += result["items"]
        cursor = result.get("nextCursor")
        if cursor is None:
            break
    assert seen == entries
    assert cursor is None


def test_without_a_limit_everything_is_one_page() -> None:
    assert page("items", Listing(ENTRIES), Paged()) == {"items": ENTRIES}


def test_the_last_full_page_has_no_next_one() -> None:
    assert "nextCursor" not in page("items", Listing(ENTRIES), Paged(limit=7))
    assert "nextCursor" in page("items", Listing(ENTRIES), Paged(limit=6))


def test_what_could_not_be_had_is_on_every_page() -> None:
    errors: list[JsonObject] = [{"server": "x", "message": "down"}]
    first = page("items", Listing(ENTRIES, errors), Paged(limit=4))
    second = page("items", Listing(ENTRIES, errors), Paged(limit=4, cursor=first["nextCursor"]))
    assert first["errors"] == second["errors"] == errors


@pytest.mark.parametrize("cursor", ["", "x", "!!!!", "ä", "bm8=", "MTI"])
def test_a_cursor_of_ones_own_making_is_refused_with_what_to_do(cursor: str) -> None:
    with pytest.raises(InvalidArguments, match="cursor: pass on the nextCursor of an earlier reply"):
        page("items", Listing(ENTRIES), Paged(cursor=cursor))


def test_a_cursor_behind_the_end_gives_an_empty_page() -> None:
    first = page("items", Listing(ENTRIES), Paged(limit=6))
    assert page("items", Listing(ENTRIES[:2]), Paged(cursor=first["nextCursor"])) == {"items": []}
