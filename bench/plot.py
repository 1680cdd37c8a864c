"""The results as a picture: bars with their numbers, in colors that can be read on light and on dark ground."""

from collections.abc import Iterator
from dataclasses import dataclass
from math import log10
from xml.sax.saxutils import escape

from bench.contestants import CONTESTANTS
from bench.results import Kind, Results
from bench.work import SHAPES, SMALL, Era

WIDTH, LABELS, ROW, BAR, GAP = 760, 150, 20, 14, 30
MARGIN, NUMBERS = 16, 90  # at the sides; for the numbers behind the bars
CALLERS = 16
# Each against white and against #0d1117 at no less than 3 : 1, and apart from one another without red and green.
COLORS = {
    "direct": "#8a8f98",
    "relay": "#7d6fc4",
    "emceepee": "#c2571a",
    "fastmcp": "#2b87b8",
    "mcp-proxy": "#3c8f73",
}


@dataclass(frozen=True, slots=True)
class Bar:
    """One contestant."""

    name: str
    rate: float


def plot(results: Results) -> str:
    """An SVG: one group of bars a shape and era, calls a second on a logarithmic scale."""
    groups = [(title, bars) for title, bars in _groups(results) if bars]
    most = max((bar.rate for _, bars in groups for bar in bars), default=1.0)
    body: list[str] = []
    y = MARGIN + 24
    for title, bars in groups:
        body.append(_text(MARGIN, y + BAR, title, weight="bold"))
        y += ROW + 2
        for bar in bars:
            body += _bar(bar, y, most)
            y += ROW
        y += GAP - ROW
    words = f"Calls a second with {CALLERS} callers and results of 100 B (logarithmic)"
    return "\n".join([_head(y + MARGIN, words), _text(MARGIN, MARGIN + 12, words, weight="bold"), *body, "</svg>\n"])


def _groups(results: Results) -> Iterator[tuple[str, list[Bar]]]:
    for shape in SHAPES:
        for era in Era:
            cells = [
                (contestant.name, results.cell(Kind(shape.key, era, CALLERS, SMALL.tool), contestant.name))
                for contestant in CONTESTANTS
            ]
            yield f"{shape.title}, {era}", [Bar(name, cell.rate) for name, cell in cells if cell is not None]


def _head(height: int, words: str) -> str:
    style = (
        "text{font-family:system-ui,sans-serif;font-size:13px;fill:#1f2328}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{escape(words)}"><style>{style}</style>'
    )


def _bar(bar: Bar, y: int, most: float) -> list[str]:
    room = WIDTH - LABELS - NUMBERS - MARGIN
    width = max(round(room * log10(max(bar.rate, 1.0)) / log10(max(most, 10.0))), 2)
    weight = "bold" if bar.name == "emceepee" else "normal"
    return [
        _text(LABELS - 8, y + BAR - 2, bar.name, anchor="end", weight=weight),
        f'<rect x="{LABELS}" y="{y}" width="{width}" height="{BAR}" rx="2" fill="{COLORS[bar.name]}"/>',
        _text(LABELS + width + 6, y + BAR - 2, f"{bar.rate:,.0f}", weight=weight),
    ]


def _text(x: int, y: int, words: str, *, anchor: str = "start", weight: str = "normal") -> str:
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">{escape(words)}</text>'
