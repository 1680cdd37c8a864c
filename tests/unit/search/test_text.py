from hypothesis import given
from hypothesis import strategies as st

from emceepee.search.text import LONGEST_SUMMARY, first_sentence, one_line


def test_control_and_invisible_characters_are_removed_from_search_texts() -> None:
    assert one_line("a\x1b[2Jb\u202ec\u200bd\ne\t f", 50) == "a [2Jb c d e f"


def test_a_description_is_shortened_to_its_first_sentence() -> None:
    assert first_sentence("Create an issue. Needs a token.\n\nArgs: x") == "Create an issue."
    assert first_sentence("\n  Read v1.2 files\n\nMore") == "Read v1.2 files"
    assert first_sentence("") == ""


def test_a_long_sentence_is_truncated_with_an_ellipsis() -> None:
    cut = first_sentence("word " * 10_000)
    assert len(cut) <= LONGEST_SUMMARY
    assert cut.endswith("…")


@given(st.text(), st.integers(2, 50))
def test_a_search_line_is_printable_and_within_its_length(text: str, most: int) -> None:
    line = one_line(text, most)
    assert len(line) <= most
    assert line.isprintable()
