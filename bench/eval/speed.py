"""How long a question takes over ten thousand tools: those of all sets, again and again under other servers."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import count
from random import Random
from time import thread_time

from bench.eval.rankers import TOOLS, fill
from bench.eval.sets import QuestionSet
from emceepee.search.documents import EntryType
from emceepee.search.index import SearchIndex

ENTRIES = 10_000
QUESTIONS = 100  # of each set
SHORT = ("create issue", "delete file", "send an email", "weather forecast", "convert currency", "read a text file")


@dataclass(frozen=True, slots=True, kw_only=True)
class Speed:
    """Milliseconds of processor time, which others at work do not change much."""

    fill: float
    add_one: float
    short: tuple[float, float]  # p50 and p99 of a few words
    long: tuple[float, float]  # of the sets' own questions


def speed(sets: list[QuestionSet], index: SearchIndex) -> Speed:
    began = thread_time()
    for copy in count():
        if len(index) >= ENTRIES:
            break
        for given in sets:
            fill(index, given, prefix=f"{given.name}{copy}.")
    filled = thread_time()
    with index.changing():
        for _ in index.replace(EntryType.TOOL, "another", [{"name": "one_more", "description": "A tool"}]):
            pass
    added = thread_time()
    questions = [
        question.text
        for given in sets
        for question in Random(1).sample(given.questions, min(QUESTIONS, len(given.questions)))
    ]
    return Speed(
        fill=(filled - began) * 1000,
        add_one=(added - filled) * 1000,
        short=_timed(index, SHORT * 20),
        long=_timed(index, questions),
    )


def _timed(index: SearchIndex, questions: Iterable[str]) -> tuple[float, float]:
    took = []
    for question in questions:
        began = thread_time()
        index.search(question, TOOLS)
        took.append((thread_time() - began) * 1000)
    took.sort()
    return took[len(took) // 2], took[int(len(took) * 0.99)]
