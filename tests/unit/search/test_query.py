from emceepee.search.query import MOST_ASKED, MOST_MEANT, Query
from emceepee.search.vocabulary import Vocabulary


def a_vocabulary(**counts: int) -> Vocabulary:
    vocabulary = Vocabulary()
    for term, count in counts.items():
        for _ in range(count):
            vocabulary.add([term])
    return vocabulary


def test_only_terms_that_are_known_are_asked_for() -> None:
    assert Query.of("delete the frobnicator", a_vocabulary(delet=1, file=1)) == Query(("delet",))


def test_synonyms_are_meant_besides_unless_they_are_not_wanted() -> None:
    known = a_vocabulary(delet=1, remov=1)
    assert Query.of("remove", known) == Query(("remov",), ("delet",))
    assert Query.of("remove", known, with_synonyms=False) == Query(("remov",))


def test_an_unknown_word_means_what_goes_on_from_it_or_what_it_was_meant_to_be() -> None:
    known = a_vocabulary(github=1, gitlab=1)
    assert Query.of("git", known).meant == ("github", "gitlab")
    assert Query.of("gihtub", known).meant == ("github",)


def test_frequent_terms_are_left_out_where_rare_ones_say_enough() -> None:
    known = a_vocabulary(rare=2, middl=400, frequent=5000)
    assert Query.of("frequent middle rare", known).asked == ("rare", "middl")
    assert Query.of("frequent", known).asked == ("frequent",)


def test_an_endless_query_is_answered_by_some_of_its_words() -> None:
    known = a_vocabulary(**{f"word{number}": 1 for number in range(200)})
    query = Query.of(" ".join(f"word{number}" for number in range(200)) + " word" * 1000, known)
    assert len(query.asked) == MOST_ASKED
    assert len(query.meant) <= MOST_MEANT
