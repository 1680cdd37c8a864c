import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.search.vocabulary import MOST_NEAR, Vocabulary, differ_by


@pytest.mark.parametrize(
    ("one", "other", "slips"),
    [("search", "serach", 1), ("search", "seach", 1), ("search", "searchh", 1), ("search", "sparch", 1)],
)
def test_a_typo_is_one_letter_omitted_added_changed_or_swapped(one: str, other: str, slips: int) -> None:
    assert not differ_by(one, other, slips - 1)
    assert differ_by(one, other, slips)
    assert differ_by(other, one, slips)


@given(st.text(alphabet="abc", max_size=8), st.text(alphabet="abc", max_size=8))
def test_the_edit_distance_of_two_words_is_symmetric(one: str, other: str) -> None:
    for most in range(3):
        assert differ_by(one, other, most) == differ_by(other, one, most)
    assert differ_by(one, other, 0) == (one == other)


def a_vocabulary(*terms: str) -> Vocabulary:
    vocabulary = Vocabulary()
    for term in terms:
        vocabulary.add([term])
    return vocabulary


def test_an_unknown_word_matches_the_most_similar_terms() -> None:
    vocabulary = a_vocabulary("search", "serve", "repositori")
    assert vocabulary.near("serach") == ["search"]
    assert vocabulary.near("repostiroi") == ["repositori"]
    assert vocabulary.near("abc") == vocabulary.near("s34rch") == []


def test_a_prefix_matches_the_terms_that_begin_with_it() -> None:
    vocabulary = a_vocabulary("repositori", "report", "repositori", "re")
    assert vocabulary.beginning_with("repo") == ["repositori", "report"]
    assert vocabulary.beginning_with("re") == []
    many = a_vocabulary(*(f"word{number}" for number in range(50)))
    assert len(many.beginning_with("word")) == MOST_NEAR


def test_a_term_is_known_as_long_as_a_document_contains_it() -> None:
    vocabulary = a_vocabulary("file", "file")
    vocabulary.remove(["file"])
    assert ("file" in vocabulary, vocabulary.count("file")) == (True, 1)
    vocabulary.remove(["file"])
    assert ("file" in vocabulary, len(vocabulary), vocabulary.near("fille")) == (False, 0, [])
