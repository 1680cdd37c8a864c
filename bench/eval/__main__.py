"""`python -m bench.eval FOLDER`: a table of how well tools are found, and how fast."""

import argparse
from pathlib import Path

from bench.eval.measures import Quality, quality
from bench.eval.rankers import rankers
from bench.eval.sets import load_sets
from bench.eval.speed import ENTRIES, Speed, speed
from emceepee.search.index import SearchIndex
from emceepee.search.vectors import Vectors

HEAD = "| set (tools / questions) | ranking | recall@5 | hit@1 | hit@3 | hit@5 | MRR |\n" + "| --- " * 7 + "|"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.eval", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the sets are")
    parser.add_argument("--bfcl", type=Path, default=Path("bfcl_eval/data"), help="where the files of BFCL are")
    parser.add_argument("--vectors", type=Path, help="word vectors, to compare with")
    options = parser.parse_args()
    sets = list(load_sets(options.folder, options.bfcl))
    print(HEAD)
    for given in sets:
        size = f"{given.name} ({len(list(given.tools))} / {len(given.questions)})"
        for name, rank in rankers(given, options.vectors).items():
            print(_row(size, name, quality(rank, given.questions)), flush=True)
    if sets:
        print()
        _print_speed("FTS5, synonyms", speed(sets, SearchIndex()))
        if options.vectors is not None:
            _print_speed("with vectors", speed(sets, SearchIndex(vectors=Vectors.load(options.vectors))))


def _print_speed(name: str, measured: Speed) -> None:
    (short, short_99), (long, long_99) = measured.short, measured.long
    print(
        f"{ENTRIES:,} tools, {name}, in processor time: filled in {measured.fill:.0f} ms, one more in "
        f"{measured.add_one:.2f} ms; a question of a few words takes {short:.2f} ms (p99 {short_99:.2f}), one of the "
        f"sets {long:.2f} ms (p99 {long_99:.2f})"
    )


def _row(given: str, name: str, measured: Quality) -> str:
    figures = (measured.recall_5, measured.hit_1, measured.hit_3, measured.hit_5, measured.mrr)
    return f"| {given} | {name} | {' | '.join(f'{figure:.3f}' for figure in figures)} |"


if __name__ == "__main__":
    main()
