"""The terms of a query, and with a lower weight the terms that may be meant."""

from collections.abc import Iterable
from dataclasses import dataclass

from emceepee.search.synonyms import synonyms
from emceepee.search.vocabulary import Vocabulary
from emceepee.search.words import terms

SHORT_QUERY = 2  # words; in such a query, a known word may also be a prefix
MOST_WORDS = 100  # per query; further words are ignored
MOST_UNKNOWN = 8  # query words that occur in no entry: names, numbers, or typos
# A term costs as many comparisons as it has entries, and frequent terms discriminate less. Rare terms come first, and
# frequent terms are used only while an answer stays fast. With a few thousand entries, no term is omitted.
MOST_ASKED, ASKED_ENTRIES = 16, 500
MOST_MEANT, MEANT_ENTRIES = 16, 150


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query. It contains only terms of the index."""

    asked: tuple[str, ...]
    meant: tuple[str, ...] = ()  # additional terms: synonyms, completions, and corrected typos

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
    """Return the rarest terms within the limits, but at least one if there is any."""
    chosen: list[str] = []
    for term in sorted(wanted, key=lambda term: (known.count(term), term))[:most]:
        entries -= known.count(term)
        if chosen and entries < 0:
            break
        chosen.append(term)
    return tuple(chosen)
