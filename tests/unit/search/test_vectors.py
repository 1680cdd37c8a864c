import json
from pathlib import Path

import pytest

from emceepee.search.documents import EntryType
from emceepee.search.index import SearchIndex
from emceepee.search.vectors import MOST_NEAREST, Vectors, convert
from emceepee.wire.json_types import JsonObject

# Two groups of related words, and words in neither group.
WORDS = {
    **{word: [1.0, 0.1 * n, 0.0, 0.3] for n, word in enumerate(("boat", "ship", "vessel", "harbor"))},
    **{word: [0.0, 0.1 * n, 1.0, 0.2] for n, word in enumerate(("cake", "bread", "oven", "flour"))},
    **{f"x{'y' * n}": [0.3, -1.0, 0.3 * n, -n] for n in range(4)},
}
TOOLS = (EntryType.TOOL,)


@pytest.fixture
def vectors(tmp_path: Path) -> Vectors:
    source, target = tmp_path / "source.txt", tmp_path / "vectors.npz"
    source.write_text("".join(f"{word} {' '.join(map(str, vector))}\n" for word, vector in WORDS.items()), "utf-8")
    assert convert(source, target) == len(WORDS)
    return Vectors.load(target)


def an_index(vectors: Vectors, *names: str) -> SearchIndex:
    index = SearchIndex(vectors=vectors)
    put(index, *names)
    return index


def put(index: SearchIndex, *names: str) -> None:
    with index.changing():
        for _ in index.replace(EntryType.TOOL, "a", [{"name": name} for name in names]):
            pass


def found(index: SearchIndex, query: str, server: str | None = None) -> list[str]:
    return [hit.document.name for hit in index.search(query, TOOLS, servers=None if server is None else (server,))]


def test_a_vector_search_finds_related_entries_without_a_common_word(vectors: Vectors) -> None:
    index = an_index(vectors, "bread_flour", "ship_harbor")
    assert found(index, "vessel")[0] == "ship_harbor"
    assert found(index, "oven")[0] == "bread_flour"
    assert found(index, "vessel", server="other") == []
    index.close()


def test_an_exact_word_ranks_above_a_vector_match(vectors: Vectors) -> None:
    index = an_index(vectors, "vessel", "ship", "boat", "harbor")
    assert found(index, "ship")[0] == "ship"
    index.close()


def test_removed_entries_lose_their_vectors(vectors: Vectors) -> None:
    index = an_index(vectors, "ship", "bread", "boat")
    put(index, "bread")
    assert found(index, "vessel") in ([], ["bread"])
    put(index, "bread", "harbor")
    assert found(index, "vessel")[0] == "harbor"
    index.remove("a")
    assert found(index, "vessel") == []
    index.close()


def test_a_vector_search_handles_very_many_entries(vectors: Vectors) -> None:
    index = an_index(vectors, *(f"bread_{number}" for number in range(MOST_NEAREST + 100)), "ship")
    assert found(index, "vessel")[0] == "ship"
    index.close()


def test_the_json_vectors_of_the_npm_package_can_be_converted(tmp_path: Path) -> None:
    document: JsonObject = {"dimensions": 4, "words": [*WORDS, ","], "vectors": WORDS | {",": [0, 0, 0, 0]}}
    (tmp_path / "source.json").write_text(json.dumps(document), "utf-8")
    assert convert(tmp_path / "source.json", tmp_path / "out.npz") == len(WORDS)


def test_an_invalid_vectors_file_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "not.npz").write_bytes(b"PK\x03\x04 no archive")
    with pytest.raises(ValueError, match="not what"):
        Vectors.load(tmp_path / "not.npz")
