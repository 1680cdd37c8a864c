"""`python -m bench`: measure, print the tables and the targets, keep the results."""

import argparse
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from bench import pages, pairs
from bench.compare import compare
from bench.contestants import CONTESTANTS, QUICK_CONTESTANTS, Contestant
from bench.load.sample import WrongAnswer
from bench.noise import Noise
from bench.parts import PARTS, QUICK_PARTS
from bench.processes import ROOT, divide_cores, end_in_order_when_asked
from bench.report import report
from bench.results import Results
from bench.settings import Settings, progress

KEPT = ROOT / ".bench"
TOO_NOISY = 0.1  # share of the cores that others took
LONG_CALLS = 1_000_000
CALLS, QUICK_CALLS = 50_000, 10_000  # of the run that looks for growing memory, if it is not to be a long one


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 1 if a contestant gave a wrong answer, however fast."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["compare"]:
        return _compare(given[1:])
    if given[:1] == ["pairs"]:
        return pairs.main(given[1:])
    options = build_parser().parse_args(given)
    settings = _settings(options)
    end_in_order_when_asked()
    results = Results(_about(settings, is_pinned=not options.no_pin))
    if not options.no_pin:
        divide_cores()
    began, noise = perf_counter(), Noise()
    try:
        failed = [part for part in settings.parts if not _measured(part, settings, results)]
    except KeyboardInterrupt:
        progress("bench: interrupted")
        return 130
    results.about["took"] = f"{perf_counter() - began:.0f} s"
    share = noise.share()
    results.about["other processes took"] = f"{share:.0%} of the cores"
    results.is_noisy = share > TOO_NOISY
    if not options.no_keep:
        _keep(results)
    print(report(results))
    if failed:
        progress(f"bench: failed: {', '.join(failed)}")
        return 1
    if options.write_docs:
        pages.write(results)
    return 0


def _measured(part: str, settings: Settings, results: Results) -> bool:
    began = perf_counter()
    try:
        PARTS[part](settings, results)
    except WrongAnswer as error:
        progress(f"bench: {part}: a wrong answer: {error}")
        return False
    progress(f"bench: {part} took {perf_counter() - began:.0f} s")
    return True


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench",
        description="emceepee, its peers, a bare relay and a direct call on the same work. "
        "`python -m bench compare A B` shows two kept results side by side; "
        "`python -m bench pairs CHECKOUT` measures this checkout and another one in turns.",
    )
    parser.add_argument(
        "--quick", action="store_true", help="one to one and a half minutes: for while one works on the code"
    )
    parser.add_argument("--only", metavar="PART,…", help=f"of {', '.join(PARTS)}")
    parser.add_argument("--contestants", metavar="NAME,…", help=f"of {', '.join(item.name for item in CONTESTANTS)}")
    parser.add_argument("--rounds", type=int, help="of which the best counts; default: 3, or 2 if quick")
    parser.add_argument("--seconds", type=float, help="each turn of each contestant; default: 0.5, or 0.3 if quick")
    parser.add_argument("--long", action="store_true", help=f"look for growing memory over {LONG_CALLS:,} calls")
    parser.add_argument(
        "--no-pin", action="store_true", help="do not keep contestants and callers on cores of their own"
    )
    parser.add_argument("--no-keep", action="store_true", help="leave no file in .bench")
    parser.add_argument("--write-docs", action="store_true", help="also write docs/benchmarks.md and its picture")
    return parser


def _settings(options: argparse.Namespace) -> Settings:
    quick: bool = options.quick
    parts = _chosen(options.only, list(QUICK_PARTS if quick else PARTS), list(PARTS))
    known = {contestant.name: contestant for contestant in CONTESTANTS}
    names = _chosen(
        options.contestants, [item.name for item in QUICK_CONTESTANTS] if quick else list(known), list(known)
    )
    return Settings(
        contestants=tuple(contestant for name, contestant in known.items() if name in names and _is_here(contestant)),
        parts=tuple(parts),
        rounds=options.rounds or (2 if quick else 3),
        seconds=options.seconds or (0.3 if quick else 0.5),
        is_quick=quick,
        long_calls=LONG_CALLS if options.long else QUICK_CALLS if quick else CALLS,
    )


def _chosen(text: str | None, default: list[str], known: list[str]) -> list[str]:
    if text is None:
        return default
    names = text.split(",")
    if unknown := set(names) - set(known):
        raise SystemExit(f"bench: unknown: {', '.join(sorted(unknown))}. Known: {', '.join(known)}")
    return names


def _is_here(contestant: Contestant) -> bool:
    if not contestant.is_installed:
        progress(f"bench: {contestant.name} is not installed, so it is left out; `make bench` installs it")
    return contestant.is_installed


def _about(settings: Settings, *, is_pinned: bool) -> dict[str, object]:
    cores = len(os.sched_getaffinity(0))
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "Python": platform.python_version(),
        "cores": cores,
        "rounds": settings.rounds,
        "seconds a turn": settings.seconds,
        "pinned": "yes" if is_pinned and cores > 1 else "no",
    }


def _keep(results: Results) -> None:
    when = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
    results.save(KEPT / f"{when}.json")
    results.save(KEPT / "latest.json")
    progress(f"bench: kept as .bench/{when}.json and .bench/latest.json")


def _compare(files: list[str]) -> int:
    if len(files) != 2:
        progress("bench: compare takes two files of .bench")
        return 2
    before, after = (Results.load(Path(file)) for file in files)
    print(compare(before, after))
    return 0


if __name__ == "__main__":
    sys.exit(main())
