"""Two checkouts are measured in turns, and each round yields one ratio."""

from pathlib import Path

import pytest

from bench.contestants import Place
from bench.load.sample import Sample
from bench.pairs import Pair, line, main, of_checkout
from bench.work import Era


def a_sample(calls: int, cpu_us: float = 100.0) -> Sample:
    return Sample(seconds=1.0, latencies=[0.001] * calls, cpu_seconds=cpu_us * calls / 1e6)


def test_the_benchmark_result_is_the_median_of_the_pairs_with_their_spread() -> None:
    pairs = [Pair(a_sample(this, 90), a_sample(100, 100)) for this in (120, 90, 100)]
    assert line("work", pairs) == (
        "work: rate 1.000 of the other (0.900 to 1.200), CPU per call 0.900 (0.900 to 0.900); 100/s against 100/s"
    )


def test_the_other_checkout_runs_its_own_source(tmp_path: Path) -> None:
    launch = of_checkout(tmp_path).launch
    assert launch is not None
    places = str(launch(Place(Era.HANDSHAKE, "1", "http://127.0.0.1:2/mcp")).environment["PYTHONPATH"]).split(":")
    assert str(tmp_path / "src") in places


def test_a_folder_that_is_not_a_checkout_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([str(tmp_path)])
    assert "is not a checkout of emceepee" in capsys.readouterr().err
