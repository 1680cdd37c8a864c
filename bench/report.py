"""The results as Markdown: for a terminal, and for the page in the docs."""

from collections.abc import Iterable, Iterator, Sequence

from bench.contestants import CONTESTANTS, DIRECT, EMCEEPEE, RELAY
from bench.results import Cell, Fact, Kind, Results
from bench.targets import Verdict, verdicts
from bench.work import SHAPES, SIZES

NAMES = [contestant.name for contestant in CONTESTANTS]
TITLES = {
    "sessions": "Sessions",
    "memory": "Memory",
    "fan-out": "A hundred callers at once, and then idle",
    "wake": "Waking up",
    "tools-list": "tools/list",
    "context": "The context that a task costs",
    "start-up": "Start-up",
    "growth-sessions": "Cost and the number of sessions",
    "growth-backends": "Cost and the number of backends",
    "state": "State that outlives the process",
    "replicas": "Workers and replicas",
    "large-results": "Large results, read in parts",
    "long-run": "A long run",
}
NOTHING = "-"
COLUMNS = ["calls/s", "p50 ms", "p99 ms", "CPU µs a call", "of the relay's rate", "added p50 ms"]
NOISY = """**Other processes kept the machine busy during this run. Verdicts on rates and times, passed or missed, mean
little; those on memory hold. Run it again on a quiet machine.**

"""
FOOTNOTE = """`-`: not measured. mcp-proxy bridges stdio and HTTP, one to the other, and speaks only the handshake era.
"""


def report(results: Results) -> str:
    blocks = [_about(results), *_calls(results), *_facts(results), _targets(results)]
    return "\n".join(block for block in blocks if block)


def _about(results: Results) -> str:
    words = "; ".join(f"{key} {value}" for key, value in results.about.items())
    return f"{words}\n" if words else ""


# Calls.


def _calls(results: Results) -> Iterator[str]:
    kinds = list(dict.fromkeys(cell.kind for cell in results.cells))
    if not kinds:
        return
    others = [name for name in NAMES if name != EMCEEPEE.name and any(results.cell(kind, name) for kind in kinds)]
    if any(results.cell(kind, EMCEEPEE.name) for kind in kinds):
        yield "### emceepee's rate, divided by that of the others\n"
        head = ["", "era", "callers", "result", *others]
        yield table(head, [[*_work(kind), *_ratios(results, kind, others)] for kind in kinds])
        yield FOOTNOTE
    for shape in SHAPES:
        rows = [
            [*_work(kind)[1:], name, *_numbers(results, kind, cell)]
            for kind in kinds
            if kind.shape == shape.key
            for name in NAMES
            if (cell := results.cell(kind, name)) is not None
        ]
        if rows:
            yield f"### {shape.title}\n"
            yield table(["era", "callers", "result", "", *COLUMNS], rows)


def _work(kind: Kind) -> list[str]:
    shape = next(shape.title for shape in SHAPES if shape.key == kind.shape)
    size = next(size.title for size in SIZES if size.tool == kind.size)
    return [shape, kind.era, str(kind.callers), size]


def _ratios(results: Results, kind: Kind, others: Sequence[str]) -> list[str]:
    ours = results.cell(kind, EMCEEPEE.name)
    cells = [results.cell(kind, name) for name in others]
    return [_number(ours.rate / other.rate) if ours and other else NOTHING for other in cells]


def _numbers(results: Results, kind: Kind, cell: Cell) -> list[str]:
    relay, direct = results.cell(kind, RELAY.name), results.cell(kind, DIRECT.name)
    return [
        _number(cell.rate),
        _number(cell.p50_ms),
        _number(cell.p99_ms),
        _number(cell.cpu_us) if cell.cpu_us else NOTHING,
        f"{cell.rate / relay.rate:.2f}" if relay else NOTHING,
        f"{cell.p50_ms - direct.p50_ms:.2f}" if direct and cell is not direct else NOTHING,
    ]


# The rest.


def _facts(results: Results) -> Iterator[str]:
    assert {fact.part for fact in results.facts} <= TITLES.keys(), "a part has no title, and would not be shown"
    for part, title in TITLES.items():
        facts = [fact for fact in results.facts if fact.part == part]
        if facts:
            names = [name for name in NAMES if any(fact.contestant == name for fact in facts)]
            rows = [
                [what, *(_fact(facts, what, name) for name in names)]
                for what in dict.fromkeys(fact.name for fact in facts)
            ]
            yield f"### {title}\n"
            yield table(["", *names], rows)


def _fact(facts: Iterable[Fact], what: str, name: str) -> str:
    found = next((fact for fact in facts if fact.name == what and fact.contestant == name), None)
    return NOTHING if found is None else amount(found.value, found.unit)


def amount(value: float, unit: str) -> str:
    """A number for people."""
    if unit == "B" and abs(value) >= 1 << 20:
        return f"{value / (1 << 20):.1f} MB"
    if unit == "B" and abs(value) >= 10 << 10:
        return f"{value / (1 << 10):.1f} KB"
    return f"{_number(value)} {unit}".strip()


def _number(value: float) -> str:
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _targets(results: Results) -> str:
    rows = [_verdict(verdict) for verdict in verdicts(results)]
    return "### Targets\n\n" + (NOISY if results.is_noisy else "") + table(["target", "limit", "found", ""], rows)


def _verdict(verdict: Verdict) -> list[str]:
    limit = f"{'≥' if verdict.is_least else '≤'} {amount(verdict.limit, verdict.unit)}"
    found = NOTHING if verdict.found is None else amount(verdict.found, verdict.unit)
    return [verdict.target, limit, found, verdict.word]


def table(head: list[str], rows: list[list[str]]) -> str:
    """Return columns of equal width, which are readable in a terminal."""
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    lines = [_line(head, widths), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
    return "\n".join([*lines, *(_line(row, widths) for row in rows)]) + "\n"


def _line(row: list[str], widths: list[int]) -> str:
    return "| " + " | ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)) + " |"
