"""`python -m bench.simulate`: a tenth of a thousand replicas is lost at once, on a fake clock."""

import argparse
import gc
import logging
import resource
import sys
from dataclasses import fields
from time import perf_counter

from bench.settings import progress
from bench.simulation.scenario import Balancing, Scenario
from bench.simulation.summary import summarize
from bench.simulation.tally import Tally
from bench.simulation.world import World

HELP = {
    "replicas": "how many there are",
    "sessions": "how many there are, in all",
    "requests_per_second": "to all replicas together",
    "changing": "share of requests that change something durable",
    "moved": "share of sessions that are not where their ids say",
    "with_timer": "share of sessions that have a timer",
    "lost": "share of replicas that are lost at once",
    "paused": "share of replicas that stand still for two leases from then on",
    "seconds": "that are simulated; the loss is after fifteen",
    "seed": "the same one gives the same course of things",
}
BALANCING = {"round-robin": Balancing.ROUND_ROBIN, "by-slot": Balancing.BY_SLOT}


def main(arguments: list[str] | None = None) -> int:
    """Returns the exit code: 1 if a promise was broken."""
    options = build_parser().parse_args(arguments)
    logging.disable(logging.CRITICAL)  # what replicas would log of each request that is lost
    chosen = [BALANCING[options.balancing]] if options.balancing else list(Balancing)
    values = {name: getattr(options, name) for name in HELP}
    kept = [_run(Scenario(balancing=balancing, refuses=options.refuses, **values)) for balancing in chosen]
    return 0 if all(tally.keeps_promises for tally in kept) else 1


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m bench.simulate",
        description="Replicas are lost at once, on a fake clock, with the rules by which real ones find sessions, "
        "renew leases and take over.",
    )
    defaults = {field.name: field.default for field in fields(Scenario)}
    for name, meaning in HELP.items():
        default = defaults[name]
        assert isinstance(default, int | float)
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(default), default=default, help=f"{meaning}; default: {default:,}")
    parser.add_argument("--balancing", choices=list(BALANCING), help="default: one after the other")
    parser.add_argument(
        "--refuses", action="store_true", help="only processes are lost: their machines refuse connections at once"
    )
    return parser


def _run(scenario: Scenario) -> Tally:
    began = perf_counter()
    world = World(scenario)
    gc.collect()
    gc.freeze()  # a million sessions that stay need not be looked through again
    tally = world.run()
    gc.unfreeze()
    print(summarize(scenario, tally))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    progress(f"simulate: {scenario.balancing}: {perf_counter() - began:.0f} s, at most {memory:,.0f} MB")
    return tally


if __name__ == "__main__":
    sys.exit(main())
