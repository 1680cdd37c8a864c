from emceepee.search.query import MOST_ASKED, MOST_MEANT, Query
from emceepee.search.vocabulary import Vocabulary


def a_vocabulary(**counts: int) -> Vocabulary:
    vocabulary = Vocabulary()
    for term, count in counts.items():
        for _ in range(count):
            vocabulary.add([term])
    return vocabulary


def test_a_query_asks_only_for_known_terms() -> None:
    assert Query.of("delete the frobnicator", a_vocabulary(delet=1, file=1)) == Query(("delet",))


def test_a_query_includes_synonyms_unless_they_are_disabled() -> None:
    known = a_vocabulary(delet=1, remov=1)
    assert Query.of("remove", known) == Query(("remov",), ("delet",))
    assert Query.of("remove", known, with_synonyms=False) == Query(("remov",))


def test_an_unknown_query_word_stands_for_its_completions_or_corrections() -> None:
    known = a_vocabulary(github=1, gitlab=1)
    assert Query.of("git", known).meant == ("github", "gitlab")
    assert Query.of("gihtub", known).meant == ("github",)


def test_frequent_query_terms_are_dropped_if_rare_ones_suffice() -> None:
    known = a_vocabulary(rare=2, middl=400, frequent=5000)
    assert Query.of("frequent middle rare", known).asked == ("rare", "middl")
    assert Query.of("frequent", known).asked == ("frequent",)


def test_an_endless_query_uses_only_some_of_its_words() -> None:
    known = a_vocabulary(**{f"word{number}": 1 for number in range(200)})
    query = Query.of(" ".join(f"word{number}" for number in range(200)) + " word" * 1000, known)
    assert len(query.asked) == MOST_ASKED
    assert len(query.meant) <= MOST_MEANT
