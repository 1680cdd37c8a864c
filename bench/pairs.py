"""`python -m bench pairs CHECKOUT`: this checkout against another one, in turns, in one run.

Each round calls both versions under the same load, one right after the other, and their order alternates. The ratio of
one round is a pair; the median of the pairs and their spread are the result. A slow minute of the machine hits both.
"""

import argparse
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from bench.contestants import EMCEEPEE, Contestant, Driver, Place, backend, started
from bench.load.sample import Sample
from bench.processes import ROOT, Launch, divide_cores, end_in_order_when_asked
from bench.settings import progress
from bench.work import SHAPES, SMALL, Era, Shape

LEAST = 0.97  # of the other checkout's rate
ROUNDS = 9
SECONDS = 1.0
WARM_SECONDS = 0.5
CALLERS = (1, 16)


@dataclass(frozen=True, slots=True)
class Pair:
    """One round of one kind of work: what this checkout did, and the other one."""

    this: Sample
    other: Sample

    @property
    def rate(self) -> float:
        return self.this.rate / self.other.rate

    @property
    def cpu(self) -> float:
        return self.this.cpu_us / self.other.cpu_us


def main(arguments: list[str]) -> int:
    """Return the exit code: 1 if the median of the pairs is below the bound for any kind of work."""
    parser = argparse.ArgumentParser(prog="python -m bench pairs", description="This checkout against another one.")
    parser.add_argument("checkout", type=Path, help="the other checkout's folder")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="per turn")
    options = parser.parse_args(arguments)
    if not (options.checkout / "src" / "emceepee").is_dir():
        parser.error(f"{options.checkout} is not a checkout of emceepee")
    end_in_order_when_asked()
    divide_cores()
    medians = []
    for shape, era in works():
        for callers, pairs in measure(options.checkout, shape, era, rounds=options.rounds, seconds=options.seconds):
            print(line(f"{shape.title}, {era}, callers: {callers}", pairs), flush=True)
            medians.append(median(pair.rate for pair in pairs))
    print(f"lowest median: {min(medians):.3f}; bound: {LEAST}; median of medians: {median(medians):.3f}")
    return int(min(medians) < LEAST)


def works() -> Iterator[tuple[Shape, Era]]:
    for shape in SHAPES:
        yield from ((shape, era) for era in (tuple(Era) if shape is SHAPES[0] else (Era.HANDSHAKE,)))


def measure(checkout: Path, shape: Shape, era: Era, *, rounds: int, seconds: float) -> Iterator[tuple[int, list[Pair]]]:
    """The pairs of each number of callers."""
    with ExitStack() as stack:
        back = stack.enter_context(backend(shape.back, era))
        this, other = (
            stack.enter_context(started(each, shape, era, back)) for each in (EMCEEPEE, of_checkout(checkout))
        )
        for driver in (this, other):
            driver.open()
            driver.load(WARM_SECONDS, max(CALLERS), SMALL)
        for callers in CALLERS:
            progress(f"{shape.title}, {era}, callers: {callers}")
            yield callers, [_pair(this, other, number, callers, seconds) for number in range(rounds)]


def _pair(this: Driver, other: Driver, number: int, callers: int, seconds: float) -> Pair:
    first, second = (this, other) if number % 2 == 0 else (other, this)
    samples = {id(driver): driver.load(seconds, callers, SMALL) for driver in (first, second)}
    return Pair(samples[id(this)], samples[id(other)])


def of_checkout(checkout: Path) -> Contestant:
    """emceepee as EMCEEPEE starts it, but with the other checkout's source."""

    def launch(place: Place) -> Launch:
        assert EMCEEPEE.launch is not None
        ours = EMCEEPEE.launch(place)
        path = str(ours.environment["PYTHONPATH"]).replace(str(ROOT / "src"), str(checkout.resolve() / "src"))
        # Its own state: another version may not read the file, and two processes on one file would slow each other.
        state = str(Path(str(ours.environment["XDG_STATE_HOME"])) / "other")
        return Launch(ours.command, {**ours.environment, "PYTHONPATH": path, "XDG_STATE_HOME": state})

    return replace(EMCEEPEE, name="other", launch=launch)


def line(title: str, pairs: list[Pair]) -> str:
    rates, cpus = sorted(pair.rate for pair in pairs), sorted(pair.cpu for pair in pairs)
    this, other = (
        median(sample.rate for sample in each) for each in zip(*((p.this, p.other) for p in pairs), strict=True)
    )
    return (
        f"{title}: rate {median(rates):.3f} of the other ({rates[0]:.3f} to {rates[-1]:.3f}), "
        f"CPU per call {median(cpus):.3f} ({cpus[0]:.3f} to {cpus[-1]:.3f}); {this:,.0f}/s against {other:,.0f}/s"
    )
