from hypothesis import given
from hypothesis import strategies as st

from emceepee.search.words import LONGEST_WORD, terms, words


def test_names_are_split_into_words_in_any_notation() -> None:
    expected = ["get", "user", "info"]
    for name in ("getUserInfo", "get_user_info", "GetUserInfo", "get-user.info", "GET_USER_INFO"):
        assert words(name) == expected, name
    assert words("HTTPServer v2") == ["http", "server", "v2"]


def test_accents_and_case_do_not_affect_words() -> None:
    assert words("Café ÉTÉ") == words("cafe ete")


def test_scripts_without_spaces_are_split_into_pairs_of_characters() -> None:
    assert words("必应搜索") == ["必应", "应搜", "搜索"]
    assert words("用Bing搜") == ["用", "bing", "搜"]


def test_stop_words_count_only_if_there_are_no_other_words() -> None:
    assert terms("how do I delete a file") == ["delet", "file"]
    assert terms("who am I") == ["who", "am", "i"]


@given(st.text())
def test_every_text_yields_terms_without_index_syntax(text: str) -> None:
    for term in terms(text):
        assert term
        assert len(term) <= LONGEST_WORD + 1
        assert not set(term) & set("\"'*():^-+{} \t\n\0")


def test_an_endless_word_is_truncated() -> None:
    assert terms("x" * 100_000) == ["x" * LONGEST_WORD]
