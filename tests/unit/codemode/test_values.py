import math
from datetime import UTC, datetime, timedelta
from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.codec import decode, encode
from emceepee.codemode.values import DEEPEST, NotJson, ScriptLog, as_json


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, None),
        ((1, {2}), [1, [2]]),
        ({1: "a", None: "b", (1, 2): "c"}, {"1": "a", "None": "b", "(1, 2)": "c"}),
        (b"ab", "YWI="),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00+00:00"),
        (timedelta(minutes=1), 60.0),
        (PurePosixPath("/a"), "/a"),
    ],
)
def test_what_json_does_not_have_is_written_in_its_words(value: object, expected: object) -> None:
    assert as_json(value) == expected


def test_what_is_nested_too_deep_or_has_too_many_digits_is_refused() -> None:
    deep: object = 0
    for _ in range(DEEPEST + 1):
        deep = [deep]
    for value in (deep, 10**5000):
        with pytest.raises(NotJson):
            as_json(value)


@given(
    st.recursive(st.none() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner) | st.tuples(inner))
)
def test_whatever_comes_out_can_be_encoded(value: object) -> None:
    decode(encode(as_json(value)))


@given(st.lists(st.text()), st.integers(1, 50))
def test_a_log_keeps_the_beginning_and_counts_the_rest(texts: list[str], most: int) -> None:
    log = ScriptLog(most)
    for text in texts:
        log.write(text)
    whole = "".join(texts).encode("utf-8", "replace")
    kept = log.text.encode("utf-8", "replace")
    assert whole.startswith(kept)
    assert len(kept) <= most
    assert len(kept) + log.dropped == len(whole)


def test_a_logged_line_begins_a_line() -> None:
    log = ScriptLog(100)
    log.write("a")
    log.write_line("b")
    log.write("c")
    assert log.lines() == ["a", "b", "c"]
    again = ScriptLog(100, log.text, 7)
    assert again.lines() == ["a", "b", "c", "… 7 more bytes were not kept"]
