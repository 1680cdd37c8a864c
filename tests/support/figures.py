"""Figures that tests measure: shown at the end of the run, and kept in a file. `tests/conftest.py` sees to both."""

from collections.abc import Iterable
from pathlib import Path

FILE = Path(__file__).parents[1] / "output" / "figures.txt"
PROPERTY = "figure"  # under which a test's report carries it, also from a worker to the process that shows it
_SEPARATOR = " | "
_recorded: list[str] = []


def record_figure(text: str) -> None:
    """One line that says what was measured, with its unit."""
    _recorded.append(text)


def take_figures() -> list[str]:
    """Return the figures recorded since the last call."""
    taken = _recorded[:]
    _recorded.clear()
    return taken


def write_figures(figures: Iterable[tuple[str, str]], file: Path, *, tests: set[str]) -> None:
    """Write figures. New ones replace earlier ones of the same `tests`; the rest of the file stays."""
    earlier = file.read_text("utf-8").splitlines() if file.exists() else []
    others = {line for line in earlier if line.partition(_SEPARATOR)[0] not in tests}
    lines = others | {test + _SEPARATOR + text for test, text in figures}
    file.parent.mkdir(exist_ok=True)
    file.write_text("".join(f"{line}\n" for line in sorted(lines)), "utf-8")
