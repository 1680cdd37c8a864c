"""The rankers of the comparison: counting words, and the index with an increasing set of features."""

from collections.abc import Callable, Sequence
from pathlib import Path

from bench.eval.sets import QuestionSet, ToolId
from emceepee.search.documents import EntryType
from emceepee.search.index import SearchIndex
from emceepee.search.vectors import Vectors
from emceepee.search.words import STOP_WORDS, words
from emceepee.wire.codec import encode_text

Ranker = Callable[[str], Sequence[ToolId]]
TOOLS = (EntryType.TOOL,)


def rankers(given: QuestionSet, vectors: Path | None) -> dict[str, Ranker]:
    found = {
        "substring": substring(given),
        "FTS5": indexed(given, SearchIndex(with_synonyms=False)),
        "FTS5, synonyms": indexed(given, SearchIndex()),
    }
    if vectors is not None:
        found["FTS5, synonyms, vectors"] = indexed(given, SearchIndex(vectors=Vectors.load(vectors)))
    return found


def substring(given: QuestionSet) -> Ranker:
    """By how many words of the question are somewhere in the tool."""
    texts = [((server, tool["name"]), encode_text([server, tool]).lower()) for server, tool in given.tools]

    def rank(question: str) -> Sequence[ToolId]:
        wanted = {word for word in words(question) if word not in STOP_WORDS}
        counts = [(-sum(word in text for word in wanted), number) for number, (_, text) in enumerate(texts)]
        return [texts[number][0] for count, number in sorted(counts)[:10] if count]

    return rank


def indexed(given: QuestionSet, index: SearchIndex) -> Ranker:
    fill(index, given)

    def rank(question: str) -> Sequence[ToolId]:
        return [(hit.document.server, hit.document.name) for hit in index.search(question, TOOLS)[:10]]

    return rank


def fill(index: SearchIndex, given: QuestionSet, *, prefix: str = "") -> None:
    with index.changing():
        for server, tools in given.servers.items():
            for _ in index.replace(EntryType.TOOL, prefix + server, tools):
                pass
