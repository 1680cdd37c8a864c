"""Figures of tests are shown and stored, for any number of processes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from support.figures import write_figures

TESTS = Path(__file__).parents[1]
BOUND = 60.0  # seconds, on a busy machine; it takes two
MEASURING = """
import pytest
from support.figures import record_figure

@pytest.mark.parametrize("number", [1, 2, 3])
def test_measures(number):
    record_figure(f"{number}00 ms")

def test_fails():
    record_figure("too long")
    assert False
"""


@pytest.mark.parametrize("workers", ["0", "2"])
def test_figures_of_all_test_workers_are_shown_at_the_end_and_stored_in_a_file(workers: str, tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(MEASURING)
    options = ("-n", workers, "-p", "conftest", "-p", "no:cacheprovider", "--rootdir", ".", "--figures", "kept.txt")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_it.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
    )
    shown = done.stdout.partition("= figures =")[2].splitlines()[1:5]
    assert shown == ["test_it.py: too long", *(f"test_it.py[{n}]: {n}00 ms" for n in (1, 2, 3))], done.stdout
    expected = ["test_it.py::test_fails | too long", *(f"test_it.py::test_measures[{n}] | {n}00 ms" for n in (1, 2, 3))]
    assert (tmp_path / "kept.txt").read_text().splitlines() == expected


def test_figures_of_tests_outside_of_the_current_run_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "figures.txt"
    write_figures([("a", "1 s"), ("a", "2 s"), ("b", "3 s")], file, tests={"a", "b"})
    write_figures([("a", "4 s")], file, tests={"a", "c"})
    assert file.read_text() == "a | 4 s\nb | 3 s\n"
