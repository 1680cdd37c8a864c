import pytest
from hypothesis import given
from hypothesis import strategies as st

from emceepee.search.stems import LONGEST_STEMMED, stem


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        *(("caresses", "caress"), ("ponies", "poni"), ("cats", "cat"), ("agreed", "agre"), ("plastered", "plaster")),
        *(("sized", "size"), ("hopping", "hop"), ("falling", "fall"), ("filing", "file"), ("happy", "happi")),
        *(("relational", "relat"), ("digitizer", "digit"), ("decisiveness", "decis"), ("electrical", "electr")),
        *(("adoption", "adopt"), ("probate", "probat"), ("rate", "rate"), ("controll", "control"), ("sky", "sky")),
        *(("is", "is"), ("v2", "v2"), ("größe", "größe")),
    ],
)
def test_a_word_has_the_stem_of_the_porter_algorithm(word: str, expected: str) -> None:
    assert stem(word) == expected


def test_forms_of_a_word_share_a_stem() -> None:
    assert {stem(word) for word in ("delete", "deletes", "deleted", "deleting", "deletion")} == {"delet"}


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyz", max_size=60))
def test_a_stem_is_never_empty_and_at_most_one_letter_longer_than_its_word(word: str) -> None:
    assert bool(stem(word)) == bool(word)
    assert len(stem(word)) <= len(word) + 1


def test_a_word_that_is_too_long_is_not_stemmed() -> None:
    endless = "s" * (LONGEST_STEMMED + 1)
    assert stem(endless) == endless
