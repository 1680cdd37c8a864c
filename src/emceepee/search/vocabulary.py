"""The terms of an index, with the possible meanings of unknown terms."""

from collections import Counter
from collections.abc import Iterable

MOST_NEAR = 5  # candidates for one unknown word
SHORTEST_BEGINNING = 3  # letters of a word that is used as a prefix
SHORTEST_MISSPELT = 4
SHORTEST_MISSPELT_TWICE = 7


class Vocabulary:
    """The number of documents that contain each term."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._by_beginning: dict[str, set[str]] = {}  # by the first letter: typos there are rare

    def __contains__(self, term: str) -> bool:
        return term in self._counts

    def __len__(self) -> int:
        return len(self._counts)

    def count(self, term: str) -> int:
        return self._counts[term]

    def add(self, terms: Iterable[str]) -> None:
        """Count the terms of one document."""
        for term in set(terms):
            if term not in self._counts:
                self._by_beginning.setdefault(term[:1], set()).add(term)
            self._counts[term] += 1

    def remove(self, terms: Iterable[str]) -> None:
        for term in set(terms):
            self._counts[term] -= 1
            if self._counts[term] <= 0:
                del self._counts[term]
                self._by_beginning[term[:1]].discard(term)

    def beginning_with(self, start: str) -> list[str]:
        """Return the most frequent terms that begin with this prefix."""
        if len(start) < SHORTEST_BEGINNING:
            return []
        found = (term for term in self._by_beginning.get(start[:1], ()) if term.startswith(start) and term != start)
        return self._most_frequent(found)

    def near(self, word: str) -> list[str]:
        """Return the terms that differ from the word by one typo, or by two for a long word."""
        if len(word) < SHORTEST_MISSPELT or not word.isalpha():
            return []
        most = 1 if len(word) < SHORTEST_MISSPELT_TWICE else 2
        for slips in range(1, most + 1):
            near = (term for term in self._by_beginning.get(word[:1], ()) if differ_by(word, term, slips))
            if found := self._most_frequent(near):
                return found
        return []

    def _most_frequent(self, terms: Iterable[str]) -> list[str]:
        return sorted(terms, key=lambda term: (-self._counts[term], term))[:MOST_NEAR]


def differ_by(one: str, other: str, most: int) -> bool:
    """Return whether at most `most` letters were dropped, added, changed, or swapped with their neighbor."""
    if abs(len(one) - len(other)) > most or len(set(one) ^ set(other)) > 2 * most:
        return False
    before: list[int] = []
    row = list(range(len(other) + 1))
    for place, letter in enumerate(one, 1):
        beyond, before = before, row
        row = [place]
        for column, compared in enumerate(other, 1):
            cost = min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != compared))
            if place > 1 and column > 1 and letter == other[column - 2] and one[place - 2] == compared:
                cost = min(cost, beyond[column - 2] + 1)
            row.append(cost)
        if min(row) > most:
            return False
    return row[-1] <= most
