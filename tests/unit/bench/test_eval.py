"""The evaluation of searches, on a set small enough to check by hand."""

import json
from pathlib import Path

import pytest

from bench.eval.measures import Quality, quality
from bench.eval.rankers import rankers
from bench.eval.sets import Question, ToolId, load_sets

A, B, C = ("s", "a"), ("s", "b"), ("s", "c")


def test_search_quality_is_averaged_over_the_questions() -> None:
    answers: dict[str, list[ToolId]] = {"first": [A, B], "second": [B, C, ("s", "d"), A], "none": []}
    questions = [
        Question(text="first", right=frozenset({A})),
        Question(text="second", right=frozenset({A, ("s", "missing")})),
        Question(text="none", right=frozenset({A})),
    ]
    assert quality(answers.__getitem__, questions) == Quality(
        recall_5=1.5 / 3, hit_1=1 / 3, hit_3=1 / 3, hit_5=2 / 3, mrr=1.25 / 3
    )


def test_missing_evaluation_sets_are_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "metatool_plugin_des.json").write_text(json.dumps({"Mailer": "Sends mail", "Clock": "Tells the time"}))
    (tmp_path / "metatool_queries.csv").write_text("Query,Tool\nsend an email,Mailer\n")
    [only] = load_sets(tmp_path, tmp_path)
    assert capsys.readouterr().out.count("left out") == 3
    found = {name: rank("send an email") for name, rank in rankers(only, None).items()}
    assert {name: ranked[0] for name, ranked in found.items()} == dict.fromkeys(found, ("", "Mailer"))
