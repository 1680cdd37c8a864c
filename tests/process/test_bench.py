"""The benchmark runs, and says what it is for: ratios. How fast anything is, is not tested here."""

import re
import subprocess
import sys

from support.pages import ROOT

BOUND = 100.0  # seconds, on a busy machine; it takes about ten


def test_the_benchmark_prints_ratios_of_emceepee_to_a_relay_and_a_direct_call() -> None:
    options = ("--only", "http-http", "--seconds", "0.1", "--rounds", "1", "--contestants", "direct,relay,emceepee")
    command = (sys.executable, "-m", "bench", *options, "--no-keep")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=BOUND, check=False)
    assert done.returncode == 0, done.stderr
    for era in ("2025-11-25", "2026-07-28"):
        words = rf"HTTP → HTTP, 16 callers, {era}: share of the bare relay's rate +\| ≥ 0.6 +\| \d"
        assert re.search(words, done.stdout), done.stdout
    assert re.search(r"\| HTTP → HTTP +\| 2025-11-25 \| 64 +\| 100 B +\| \d\S+ +\| \d", done.stdout), done.stdout
