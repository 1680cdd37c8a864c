from hypothesis import given
from hypothesis import strategies as st

from emceepee.search.words import LONGEST_WORD, terms, words


def test_names_are_taken_apart_however_they_are_written() -> None:
    expected = ["get", "user", "info"]
    for name in ("getUserInfo", "get_user_info", "GetUserInfo", "get-user.info", "GET_USER_INFO"):
        assert words(name) == expected, name
    assert words("HTTPServer v2") == ["http", "server", "v2"]


def test_accents_and_case_make_no_difference() -> None:
    assert words("Café ÉTÉ") == words("cafe ete")


def test_scripts_without_spaces_are_taken_in_pairs() -> None:
    assert words("必应搜索") == ["必应", "应搜", "搜索"]
    assert words("用Bing搜") == ["用", "bing", "搜"]


def test_words_that_say_nothing_count_only_where_there_is_nothing_else() -> None:
    assert terms("how do I delete a file") == ["delet", "file"]
    assert terms("who am I") == ["who", "am", "i"]


@given(st.text())
def test_every_text_has_terms_without_a_letter_that_means_something_to_the_index(text: str) -> None:
    for term in terms(text):
        assert term
        assert len(term) <= LONGEST_WORD + 1
        assert not set(term) & set("\"'*():^-+{} \t\n\0")


def test_a_text_of_one_endless_word_is_cut() -> None:
    assert terms("x" * 100_000) == ["x" * LONGEST_WORD]
