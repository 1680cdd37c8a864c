"""The log of a script stores the beginning of any output."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.codemode.script_log import EXACT, ScriptLog
from emceepee.codemode.values import NotJson


@given(st.lists(st.text()), st.integers(1, 50))
def test_a_script_log_keeps_the_beginning_and_counts_the_rest(texts: list[str], most: int) -> None:
    log = ScriptLog(most)
    for text in texts:
        log.write(text)
    whole = "".join(texts).encode("utf-8", "replace")
    kept = log.text.encode("utf-8", "replace")
    assert whole.startswith(kept)
    assert len(kept) <= most
    assert len(kept) + log.dropped == len(whole)


def test_a_script_log_line_begins_on_a_new_line() -> None:
    log = ScriptLog(100)
    log.write("a")
    log.write_line("b")
    log.write("c")
    assert log.lines() == ["a", "b", "c"]
    again = ScriptLog(100, log.text, 7)
    assert again.lines() == ["a", "b", "c", "… 7 more bytes were dropped"]


def test_logged_values_form_one_line() -> None:
    log = ScriptLog(100)
    log.write("a")
    log.write_values(["found", 3, {"n": (1, None)}])
    log.write_values([])
    assert log.text == "a\nfound 3 {'n': [1, None]}\n\n"


def test_a_value_too_large_for_the_script_log_is_marked() -> None:
    value: object = 1
    for _ in range(60):
        value = [value, value]
    log = ScriptLog(100_000)
    log.write_values(["before", value, "after"])
    log.write_values(["next"])
    first, second = log.lines()
    assert first == "before (the rest of the line is not logged: it takes more than 2000 values)"
    assert second == "next"


def test_a_long_log_text_is_truncated_and_a_huge_integer_is_rejected() -> None:
    log = ScriptLog(10)
    log.write_values(["x" * 50])
    assert log.lines() == ["x" * 10, "… 41 more bytes were dropped"]
    with pytest.raises(NotJson):
        ScriptLog(10).write_values([1 << 20_000])


def test_an_immense_log_text_is_counted_in_characters() -> None:
    log = ScriptLog(10)
    log.write("\u20ac" * (EXACT + 13))
    assert log.dropped == 3 * EXACT + 10
