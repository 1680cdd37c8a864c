"""The index: FTS5 in memory, updated entry by entry, and ranked by BM25 with weights."""

import sqlite3
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from emceepee.search.documents import Document, EntryType
from emceepee.search.query import Query
from emceepee.search.vocabulary import Vocabulary
from emceepee.search.words import terms
from emceepee.wire.json_types import JsonObject

if TYPE_CHECKING:
    from emceepee.search.vectors import Vectors, VectorTable

# One setting for all users: words in a name count most, words in an argument's text least.
WEIGHTS = {"name": 4, "title": 2, "description": 1, "arguments": 1, "argument_texts": 0.5, "server": 2, "facets": 0}
MEANT_WEIGHT = 0.25  # of a term that is not in the query but may be meant
NEAR_WEIGHT = 0.3  # of similarity by word vectors, if available
CANDIDATES = 200  # the best hits of each list, which are then compared
MANY_WRITES = 200  # after which the index is optimized for faster queries
_COLUMNS = ", ".join(WEIGHTS)
# Terms arrive normalized and contain only letters and digits, so that FTS5's tokenizer splits only at spaces.
_CREATE = f"CREATE VIRTUAL TABLE entries USING fts5({_COLUMNS}, tokenize = 'unicode61 remove_diacritics 0')"
_INSERT = f"INSERT INTO entries(rowid, {_COLUMNS}) VALUES ({', '.join('?' * (len(WEIGHTS) + 1))})"
_MATCH = (
    f"SELECT rowid, -bm25(entries, {', '.join(map(str, WEIGHTS.values()))}) AS score FROM entries "
    "WHERE entries MATCH ? ORDER BY score DESC, rowid LIMIT ?"
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A document and its score, which is comparable within one answer only."""

    document: Document
    score: float


class SearchIndex:
    """An index of many servers' entries, for use by one thread."""

    def __init__(self, *, with_synonyms: bool = True, vectors: "Vectors | None" = None) -> None:
        self._database = sqlite3.connect(":memory:", isolation_level=None, cached_statements=16)
        self._database.execute(_CREATE)
        self._with_synonyms = with_synonyms
        self._vocabulary = Vocabulary()
        self._documents: dict[int, Document] = {}
        self._rows: dict[tuple[EntryType, str], dict[str, int]] = {}  # rows of a server's entries of one type, by name
        self._numbers: dict[str, int] = {}  # by server, because server names may have any characters
        self._next_row = 1
        self._vectors = _table_of(vectors) if vectors is not None else None
        self.writes = 0  # inserted or removed entries so far

    def __len__(self) -> int:
        return len(self._documents)

    def close(self) -> None:
        self._database.close()

    def count(self, entry_type: EntryType, server: str) -> int:
        return len(self._rows.get((entry_type, server), ()))

    def servers(self) -> set[str]:
        return {server for _, server in self._rows}

    def documents(self, types: Collection[EntryType], servers: Collection[str] | None = None) -> Iterator[Document]:
        for (entry_type, owner), rows in self._rows.items():
            if entry_type in types and (servers is None or owner in servers):
                yield from (self._documents[row] for row in rows.values())

    # Changes.

    @contextmanager
    def changing(self) -> Iterator[None]:
        """Group many changes in one transaction, which is faster."""
        before = self.writes
        self._database.execute("BEGIN")
        try:
            yield
        finally:
            self._database.execute("COMMIT")
            if self.writes - before >= MANY_WRITES:
                self._database.execute("INSERT INTO entries(entries) VALUES ('optimize')")

    def replace(self, entry_type: EntryType, server: str, entries: Iterable[JsonObject]) -> Iterator[None]:
        """Replace all entries of this type and server. Equal entries stay; each step changes one entry."""
        rows = self._rows.setdefault((entry_type, server), {})
        wanted = {
            document.name: document for entry in entries if (document := Document(entry_type, server, entry)).name
        }
        for name in [name for name in rows if name not in wanted]:
            self._delete(rows.pop(name))
            yield
        for name, document in wanted.items():
            row = rows.get(name)
            if row is not None:
                if self._documents[row].entry == document.entry:
                    continue
                self._delete(rows.pop(name))
            rows[name] = self._insert(document)
            yield

    def remove(self, server: str) -> None:
        """Remove all entries of the server."""
        for key in [key for key in self._rows if key[1] == server]:
            for row in self._rows.pop(key).values():
                self._delete(row)

    def _insert(self, document: Document) -> int:
        row, self._next_row = self._next_row, self._next_row + 1
        fields = document.fields()
        columns = [terms(text) for text in fields]
        number = self._numbers.setdefault(document.server, len(self._numbers))
        facets = f"{_type_facet(document.type)} {_server_facet(number)}"
        self._database.execute(_INSERT, (row, *map(" ".join, columns), facets))
        self._vocabulary.add(term for column in columns for term in column)
        if self._vectors is not None:
            self._vectors.add(row, fields)
        self._documents[row] = document
        self.writes += 1
        return row

    def _delete(self, row: int) -> None:
        document = self._documents.pop(row)
        self._database.execute("DELETE FROM entries WHERE rowid = ?", (row,))
        self._vocabulary.remove(term for text in document.fields() for term in terms(text))
        if self._vectors is not None:
            self._vectors.remove(row)
        self.writes += 1

    # Queries.

    def search(self, text: str, types: Collection[EntryType], *, servers: Collection[str] | None = None) -> list[Hit]:
        """Return the hits, best first; a very long list is cut."""
        query = Query.of(text, self._vocabulary, with_synonyms=self._with_synonyms)
        scores = dict(self._matches(query.asked, types, servers))
        for row, score in self._matches(query.meant, types, servers):
            scores[row] = scores.get(row, 0.0) + MEANT_WEIGHT * score
        if self._vectors is not None:
            near = islice(self._near(text, self._vectors, types, servers), CANDIDATES)
            scores = _mixed(scores, dict(near))
        best = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
        return [Hit(self._documents[row], score) for row, score in best]

    def _near(
        self, text: str, vectors: "VectorTable", types: Collection[EntryType], servers: Collection[str] | None
    ) -> Iterator[tuple[int, float]]:
        for row, nearness in vectors.nearest(text):
            document = self._documents[row]
            if document.type in types and (servers is None or document.server in servers):
                yield row, nearness

    def _matches(
        self, wanted: Collection[str], types: Collection[EntryType], servers: Collection[str] | None
    ) -> list[tuple[int, float]]:
        if not wanted:
            return []
        condition = _any_of(wanted)
        if servers is None:
            # Most entries have the wanted type: filtering afterwards is faster, if enough hits remain.
            found = self._database.execute(_MATCH, (condition, CANDIDATES)).fetchall()
            fitting = [(row, score) for row, score in found if self._documents[row].type in types]
            if len(found) < CANDIDATES or len(fitting) * 2 >= CANDIDATES:
                return fitting
        facets = f"facets : ({_any_of(map(_type_facet, types))})"
        if servers is not None:
            numbers = [self._numbers.get(server, -1) for server in servers] or [-1]
            facets += f" AND facets : ({_any_of(map(_server_facet, numbers))})"
        return self._database.execute(_MATCH, (f"{facets} AND ({condition})", CANDIDATES)).fetchall()


def _table_of(vectors: "Vectors") -> "VectorTable":
    from emceepee.search.vectors import VectorTable

    return VectorTable(vectors)


def _mixed(scores: dict[int, float], near: dict[int, float]) -> dict[int, float]:
    """Mix both scores as shares of their best, because their scales are unrelated."""
    best, nearest = max(scores.values(), default=0.0) or 1.0, max(near.values(), default=0.0) or 1.0
    return {
        row: (1 - NEAR_WEIGHT) * scores.get(row, 0.0) / best + NEAR_WEIGHT * near.get(row, 0.0) / nearest
        for row in scores.keys() | near.keys()
    }


def _any_of(wanted: Iterable[str]) -> str:
    """Return the quoted terms joined by OR. Quoting keeps a term from being FTS5 syntax; no term contains a quote."""
    return " OR ".join(f'"{term}"' for term in wanted)


def _type_facet(entry_type: EntryType) -> str:
    return f"type0{entry_type.lower()}"


def _server_facet(number: int) -> str:
    return f"server0{number}"
