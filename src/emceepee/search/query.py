"""What a query asks for: its own terms, and at a lower weight those that may be meant."""

from collections.abc import Iterable
from dataclasses import dataclass

from emceepee.search.synonyms import synonyms
from emceepee.search.vocabulary import Vocabulary
from emceepee.search.words import terms

SHORT_QUERY = 2  # words: then a known one may be the beginning of another, too
MOST_WORDS = 100  # of a query that are looked at
MOST_UNKNOWN = 8  # of them, in no entry: names and numbers, or slips
# A term costs as many comparisons as entries have it, and tells the less. Rare ones come first, and frequent ones only
# as long as an answer stays quick: in some thousand entries nothing is left out.
MOST_ASKED, ASKED_ENTRIES = 16, 500
MOST_MEANT, MEANT_ENTRIES = 16, 150


@dataclass(frozen=True, slots=True)
class Query:
    """Terms of the index only."""

    asked: tuple[str, ...]
    meant: tuple[str, ...] = ()  # besides: synonyms, words that go on, words without the slip

    @classmethod
    def of(cls, text: str, known: Vocabulary, *, with_synonyms: bool = True) -> "Query":
        given = list(dict.fromkeys(terms(text)))[:MOST_WORDS]
        others: set[str] = set()
        for term in [term for term in given if term not in known][:MOST_UNKNOWN]:
            others.update(known.beginning_with(term) or known.near(term))
        asked = [term for term in given if term in known]
        if len(given) <= SHORT_QUERY:
            others.update(longer for term in asked for longer in known.beginning_with(term))
        if with_synonyms:
            others.update(other for term in given for other in synonyms(term) if other in known)
        return cls(
            _rarest(asked, known, most=MOST_ASKED, entries=ASKED_ENTRIES),
            _rarest(others.difference(asked), known, most=MOST_MEANT, entries=MEANT_ENTRIES),
        )


def _rarest(wanted: Iterable[str], known: Vocabulary, *, most: int, entries: int) -> tuple[str, ...]:
    """At least one, if there is any."""
    chosen: list[str] = []
    for term in sorted(wanted, key=lambda term: (known.count(term), term))[:most]:
        entries -= known.count(term)
        if chosen and entries < 0:
            break
        chosen.append(term)
    return tuple(chosen)
