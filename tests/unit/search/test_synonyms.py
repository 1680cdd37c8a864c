from emceepee.search.stems import stem
from emceepee.search.synonyms import synonyms


def test_words_of_a_synonym_group_stand_for_each_other() -> None:
    assert stem("delete") in synonyms(stem("remove"))
    assert stem("remove") in synonyms(stem("delete"))
    assert stem("mail") in synonyms(stem("email"))


def test_no_word_is_its_own_synonym_and_unknown_words_have_none() -> None:
    assert "file" not in synonyms("file")
    assert list(synonyms("zzz")) == []
