"""Two runs side by side: what emceepee, and how emceepee against the relay, did then and now."""

from collections.abc import Iterator

from bench.contestants import EMCEEPEE, RELAY
from bench.report import amount
from bench.results import Kind, Results


def compare(before: Results, after: Results) -> str:
    return "\n".join([*_calls(before, after), *_facts(before, after)])


def _calls(before: Results, after: Results) -> Iterator[str]:
    for cell in after.cells:
        old = before.cell(cell.kind, cell.contestant)
        if cell.contestant != EMCEEPEE.name or old is None:
            continue
        kind = cell.kind
        words = f"{kind.shape} {kind.era} {kind.callers} callers {kind.size}"
        change = f"{amount(old.rate, '/s')} -> {amount(cell.rate, '/s')} ({cell.rate / old.rate - 1:+.0%})"
        shares = f"of the relay {_share(before, kind)} -> {_share(after, kind)}"
        cost = f"CPU {amount(old.cpu_us, 'µs')} -> {amount(cell.cpu_us, 'µs')} ({cell.cpu_us / old.cpu_us - 1:+.0%})"
        yield f"{words}: {change}; {shares}; {cost}"


def _share(results: Results, kind: Kind) -> str:
    ours, relay = results.cell(kind, EMCEEPEE.name), results.cell(kind, RELAY.name)
    return f"{ours.rate / relay.rate:.2f}" if ours and relay else "-"


def _facts(before: Results, after: Results) -> Iterator[str]:
    for fact in after.facts:
        old = before.value(fact.part, fact.name, fact.contestant)
        if old is not None and fact.contestant == EMCEEPEE.name:
            change = f" ({fact.value / old - 1:+.0%})" if old else ""
            yield f"{fact.part}: {fact.name}: {amount(old, fact.unit)} -> {amount(fact.value, fact.unit)}{change}"
