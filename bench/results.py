"""Everything one run found, and how it is kept."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.load.sample import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """One contestant's turn at one kind of work."""

    calls: int
    rate: float
    p50_ms: float
    p99_ms: float
    cpu_us: float

    @classmethod
    def of(cls, sample: Sample) -> "Round":
        return cls(
            calls=sample.calls,
            rate=sample.rate,
            p50_ms=sample.percentile_ms(0.5),
            p99_ms=sample.percentile_ms(0.99),
            cpu_us=sample.cpu_us,
        )


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of work."""

    shape: str
    era: str
    callers: int
    size: str


@dataclass(slots=True)
class Cell:
    """How one contestant did at one kind of work. Of each number the best round counts: noise only ever slows."""

    kind: Kind
    contestant: str
    rounds: list[Round] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return max(item.rate for item in self.rounds)

    @property
    def p50_ms(self) -> float:
        return min(item.p50_ms for item in self.rounds)

    @property
    def p99_ms(self) -> float:
        return min(item.p99_ms for item in self.rounds)

    @property
    def cpu_us(self) -> float:
        return min(item.cpu_us for item in self.rounds)


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that is one number."""

    part: str
    name: str
    contestant: str
    value: float
    unit: str


class Results:
    """Cells and facts."""

    def __init__(self, about: dict[str, Any] | None = None) -> None:
        self.about: dict[str, Any] = about or {}
        self.is_noisy = False  # others took so much of the machine that times, and their ratios, mean little
        self._cells: dict[tuple[Kind, str], Cell] = {}
        self._facts: dict[tuple[str, str, str], Fact] = {}

    @property
    def cells(self) -> list[Cell]:
        return list(self._cells.values())

    @property
    def facts(self) -> list[Fact]:
        return list(self._facts.values())

    def add_round(self, kind: Kind, contestant: str, sample: Sample) -> None:
        self._cells.setdefault((kind, contestant), Cell(kind, contestant)).rounds.append(Round.of(sample))

    def add(self, part: str, name: str, value: float, unit: str, contestant: str = "emceepee") -> None:
        self._facts[part, name, contestant] = Fact(part, name, contestant, value, unit)

    def cell(self, kind: Kind, contestant: str) -> Cell | None:
        return self._cells.get((kind, contestant))

    def value(self, part: str, name: str, contestant: str = "emceepee") -> float | None:
        fact = self._facts.get((part, name, contestant))
        return None if fact is None else fact.value

    def save(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        kept = {
            "about": self.about,
            "is_noisy": self.is_noisy,
            "cells": [asdict(cell) for cell in self.cells],
            "facts": [asdict(fact) for fact in self.facts],
        }
        path.write_text(json.dumps(kept, indent=1), "utf-8")

    @classmethod
    def load(cls, path: Path) -> "Results":
        kept = json.loads(path.read_text("utf-8"))
        results = cls(kept["about"])
        results.is_noisy = kept["is_noisy"]
        for item in kept["cells"]:
            kind = Kind(**item["kind"])
            rounds = [Round(**given) for given in item["rounds"]]
            results._cells[kind, item["contestant"]] = Cell(kind, item["contestant"], rounds)
        for item in kept["facts"]:
            fact = Fact(**item)
            results._facts[fact.part, fact.name, fact.contestant] = fact
        return results
