import re
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.state.regex import LARGEST_WINDOW, LineRegex
from emceepee.tools.excerpts import grep
from emceepee.tools.excerpts.grep import GrepOutcome, LineSearch
from support.fakes.clock import FakeClock


async def pieces(text: bytes, size: int) -> AsyncIterator[bytes]:
    for at in range(0, len(text), size):
        yield text[at : at + size]


async def search(
    pattern: str,
    text: bytes,
    *,
    start: int = 0,
    room: int = 10_000,
    size: int = 1 << 20,
    clock: FakeClock | None = None,
) -> GrepOutcome:
    found = LineSearch(LineRegex(pattern), start=start, room=room, clock=clock or FakeClock())
    return await found.run(pieces(text, size))


async def lines(pattern: str, text: str, size: int = 7) -> list[tuple[int, str]]:
    outcome = await search(pattern, text.encode(), size=size)
    return [(match["line"], match["text"]) for match in outcome.matches]


async def test_grep_returns_each_matching_line_once_with_its_number() -> None:
    assert await lines("a+b", "aab ab\nxx\nab\n\nlast ab") == [(1, "aab ab"), (3, "ab"), (5, "last ab")]


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("^b", [(2, "bc")]),
        ("c$", [(2, "bc"), (3, "c")]),
        ("^$", [(4, "")]),
        ("b[^x]*c", [(2, "bc")]),
        (r"ab\s*bc", []),
        ("(?i)BC", [(2, "bc")]),
    ],
)
async def test_a_grep_match_lies_within_one_line(pattern: str, found: list[tuple[int, str]]) -> None:
    assert await lines(pattern, "ab\nbc\nc\n\nd") == found


@given(st.text("ab\n", max_size=60), st.sampled_from(["a", "ab", "^b", "b$", "a+b+", "^a*$"]), st.integers(1, 9))
async def test_a_grep_result_does_not_depend_on_chunk_sizes(text: str, pattern: str, size: int) -> None:
    split = text.split("\n")
    expected = [(number, line) for number, line in enumerate(split, 1) if re.search(pattern, line)]
    if text.endswith("\n") or not text:
        expected = [entry for entry in expected if entry[0] < len(split)]  # no text follows the last line break
    assert await lines(pattern, text, size) == expected


async def test_grep_shows_the_surroundings_of_each_match_in_a_long_line() -> None:
    text = b"x" * 5000 + b"NEEDLE" + b"y" * 200_000 + b"NEEDLE" + b"z" * 10
    found = (await search("NEEDLE", text, size=1000)).matches
    assert [match["offset"] for match in found] == [5000, 205_006]
    assert found[0]["text"] == "…" + "x" * grep.AROUND + "NEEDLE" + "y" * grep.AROUND + "…"
    assert [match["line"] for match in found] == [1, 1]


async def test_grep_finds_a_match_across_two_chunks_of_a_long_line() -> None:
    for shift in range(8):
        text = b"x" * (grep.LONGEST_LINE * 2 - shift) + b"NEEDLE" + b"y" * grep.LONGEST_LINE * 3
        assert len((await search("NEEDLE", text, size=grep.LONGEST_LINE)).matches) == 1
        assert (await search("^y", text, size=grep.LONGEST_LINE)).matches == []


async def test_grep_continues_from_the_next_offset_when_matches_do_not_fit() -> None:
    text = b"".join(b"line %d\n" % number for number in range(1000))
    told: list[int] = []
    start: int | None = 0
    while start is not None:
        outcome = await search("^line", text, start=start, room=2000, size=500)
        told += [match["line"] for match in outcome.matches]
        start = outcome.next_offset
    assert told == list(range(1, 1001))


async def test_a_slow_grep_stops_and_returns_the_next_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep, "MOST_SECONDS", -1.0)
    text = b"nothing\n" * 1000 + b"NEEDLE\n"
    outcome = await search("NEEDLE", text, size=1000)
    assert outcome.matches == []
    assert outcome.next_offset == 1000
    monkeypatch.undo()
    assert [match["line"] for match in (await search("NEEDLE", text, start=1000)).matches] == [1001]


def test_grep_uses_small_windows_for_a_large_pattern() -> None:
    assert LineRegex("ERROR").window_bytes == LARGEST_WINDOW
    assert LineRegex("[a-z]{1,300}" * 3).window_bytes < 64 << 10
