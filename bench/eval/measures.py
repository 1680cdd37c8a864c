"""How good a ranking is, as a mean over questions."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.eval.rankers import Ranker
from bench.eval.sets import Question, ToolId


@dataclass(frozen=True, slots=True, kw_only=True)
class Quality:
    """recall: the share of the right tools among the first five; hit: whether any is among the first so many."""

    recall_5: float
    hit_1: float
    hit_3: float
    hit_5: float
    mrr: float


def quality(rank: Ranker, questions: Sequence[Question]) -> Quality:
    ranked = [(rank(question.text), question.right) for question in questions]
    count = len(ranked)

    def hit(first: int) -> float:
        return sum(bool(right.intersection(found[:first])) for found, right in ranked) / count

    return Quality(
        recall_5=sum(len(right.intersection(found[:5])) / len(right) for found, right in ranked) / count,
        hit_1=hit(1),
        hit_3=hit(3),
        hit_5=hit(5),
        mrr=sum(_reciprocal_rank(found, right) for found, right in ranked) / count,
    )


def _reciprocal_rank(found: Sequence[ToolId], right: frozenset[ToolId]) -> float:
    return next((1 / place for place, tool in enumerate(found, 1) if tool in right), 0.0)
