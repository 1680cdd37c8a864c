"""The benchmark runs and prints ratios. Its speed is not tested."""

import re
import subprocess
import sys

from support.documentation import ROOT

BOUND = 100.0  # seconds, on a busy machine; it takes about ten
GROWN_KB = 1024  # over ten thousand calls: a hundred bytes each


def printed_by(*options: str) -> str:
    command = (sys.executable, "-m", "bench", *options, "--no-keep")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BOUND, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_benchmark_prints_ratios_of_emceepee_to_a_relay_and_a_direct_call() -> None:
    options = ("--only", "http-http", "--seconds", "0.1", "--rounds", "1", "--contestants", "direct,relay,emceepee")
    printed = printed_by(*options)
    for era in ("2025-11-25", "2026-07-28"):
        words = rf"HTTP → HTTP, 16 callers, {era}: share of the bare relay's rate +\| ≥ 0.6 +\| \d"
        assert re.search(words, printed), printed
    assert re.search(r"\| HTTP → HTTP +\| 2025-11-25 \| 64 +\| 100 B +\| \d\S+ +\| \d", printed), printed


def test_memory_stays_constant_over_ten_thousand_calls() -> None:
    printed = printed_by("--only", "long-run", "--quick", "--contestants", "emceepee")
    grown = re.search(r"memory grown after the first tenth +\| (-?[\d.,]+) (KB|MB|B)", printed)
    assert grown, printed
    assert grown[2] != "MB", printed
    assert grown[2] == "B" or float(grown[1].replace(",", "")) <= GROWN_KB, printed
