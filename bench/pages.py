"""The results in the docs: a picture, and tables between two marks of a page."""

from bench.plot import plot
from bench.processes import ROOT
from bench.report import report
from bench.results import Results

PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "benchmarks.svg"
BEGIN, END = "<!-- results begin -->", "<!-- results end -->"


def write(results: Results) -> None:
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n\n{report(results)}\n{END}{after}", "utf-8")
    PICTURE.write_text(plot(results), "utf-8")
