"""Replicas under load, of which any may be killed, paused or stopped at any moment, as may their store."""

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from support.callers.replicas import TOKEN, restartable_replicas
from support.faults import ledger
from support.faults.chaos_schedule import PlannedFault
from support.faults.fault_callers import FaultCaller
from support.faults.findings import Findings, Rule
from support.faults.inflicting import Inflicter
from support.faults.kills import LIMITS, counting_backends, open_callers
from support.faults.lateness import Lateness
from support.faults.session_caller import KINDS
from support.faults.settling import check, recover, settle
from support.faults.stale_commits import StaleCommitWatch
from support.faults.world import World
from support.figures import record_figure
from support.system.processes import below
from support.system.redis_server import RedisServer, redis_server

CALLERS = 16
STEP_PAUSE = 0.25  # seconds, so that two cores are busy with faults and not with load
SLACK_SECONDS = 7.0  # beyond two leases: time to find the holder of a session, and for a store that hangs
AT_ONCE_SECONDS = 3.0  # for an answer where nothing is wrong
STORE_AFTERMATH = 3.0  # seconds after its return, until everyone has heard of it and has written what waited
SEED_VARIABLE = "EMCEEPEE_CHAOS_SEED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chaos:
    """`module` is emceepee, or an emceepee with a bug."""

    schedule: Sequence[PlannedFault]
    seed: int
    replicas: int = 3
    has_redis: bool = True
    """Without Redis they share a file. No replica may be paused: a holder must end before another takes its session."""
    lease: float = 2.0
    module: str = "emceepee"
    ends_with_first_finding: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """Counts of actions and answers, and the broken rules."""

    counts: Counter[str]
    findings: Findings


def chaos_seed() -> int:
    """Of the environment, so that a run can be repeated as far as chance is to blame."""
    return int(os.environ.get(SEED_VARIABLE) or random.randrange(1 << 32))


async def run_chaos(folder: Path, chaos: Chaos) -> Outcome:
    """From the first session to the last check."""
    before = set(below(os.getpid()))
    async with _world(folder, chaos) as (world, store):
        callers = await open_callers(world, folder, chaos.seed, [KINDS[at % len(KINDS)] for at in range(CALLERS)])
        async with AsyncExitStack() as watching:
            if store is not None:
                await watching.enter_async_context(StaleCommitWatch(store, world.findings))
            await _under_load(world, callers, Inflicter(world, store), chaos)
        if not (chaos.ends_with_first_finding and world.findings.found):
            await _settle(world, callers)
        world.counts += ledger.count(caller.ledger for caller in callers)
        world.counts["sessions taken from a process that was paused"] = _logged(world, "session_taken_by_another")
    left = set(below(os.getpid())) - before
    world.findings.require(not left, Rule.NOTHING_LEFT, f"processes {left}")
    _report(folder, world, chaos)
    return Outcome(world.counts, world.findings)


@asynccontextmanager
async def _world(folder: Path, chaos: Chaos) -> AsyncIterator[tuple[World, RedisServer | None]]:
    lease = {"replica_lease_seconds": chaos.lease} if chaos.has_redis else {}
    config = {"limits": LIMITS | lease}
    env = {"EMCEEPEE_CONFIG": json.dumps(config)}
    async with AsyncExitStack() as stack:
        backends = await stack.enter_async_context(counting_backends())
        store = stack.enter_context(redis_server(appendonly=True)) if chaos.has_redis else None
        arguments = ["--allow-commands", "--state", "sqlite" if store is None else store.url("chaos")]
        processes = await stack.enter_async_context(
            restartable_replicas(folder, chaos.replicas, *arguments, env=env, module=chaos.module)
        )
        world = World(processes, backends)
        world.lateness = await stack.enter_async_context(Lateness())
        world.timeline.late = world.lateness.seconds
        world.headers = {"authorization": f"Bearer {TOKEN}"}
        world.timeline.aftermath = STORE_AFTERMATH
        world.felt = chaos.lease * 1.5 + AT_ONCE_SECONDS
        world.bound, world.at_once = chaos.lease * 2 + SLACK_SECONDS, AT_ONCE_SECONDS
        world.pause = STEP_PAUSE
        yield world, store


async def _under_load(world: World, callers: list[FaultCaller], inflicter: Inflicter, chaos: Chaos) -> None:
    running = [asyncio.create_task(caller.run()) for caller in callers]
    faults = asyncio.create_task(inflicter.carry_out(chaos.schedule))
    try:
        while not faults.done():
            done, _ = await asyncio.wait({faults, *running}, timeout=1, return_when=asyncio.FIRST_COMPLETED)
            for task in done - {faults}:
                task.result()  # a caller that has failed fails the test
            if chaos.ends_with_first_finding and world.findings.found:
                world.is_over = True
        await faults
        world.is_over = True
        async with asyncio.timeout(60):
            await asyncio.gather(*running)
    finally:
        for task in (faults, *running):
            task.cancel()
        await asyncio.gather(faults, *running, return_exceptions=True)


async def _settle(world: World, callers: list[FaultCaller]) -> None:
    """Each caller by itself, as they did before."""
    took = await asyncio.gather(*map(recover, callers))
    world.counts["ms until every session worked everywhere again"] = int(max(took) * 1000)
    for finish in (settle, check):
        for result in await asyncio.gather(*map(finish, callers), return_exceptions=True):
            if isinstance(result, BaseException):
                world.findings.add(Rule.SESSIONS_RECOVER, f"{finish.__name__}: {result!r}")


def _logged(world: World, words: str) -> int:
    return sum(words in line for process in world.processes for line in process.log)


def _report(folder: Path, world: World, chaos: Chaos) -> None:
    lines = [f"{fault.began:.3f} {fault.ended:.3f} {fault.kind} {fault.target}" for fault in world.timeline.faults]
    (folder / "faults.txt").write_text("\n".join(lines))
    (folder / "findings.txt").write_text(str(world.findings))
    if world.findings.found:
        (folder / "requests.txt").write_text("\n".join(world.requests))
    late = f"the machine was late by {world.lateness.in_all:.2f} s in all, {world.lateness.longest:.2f} s at once"
    record_figure(f"{SEED_VARIABLE}={chaos.seed}, slowest answer {world.slowest:.2f} s beyond its own time; {late}")
    record_figure("; ".join(f"{what}: {count}" for what, count in sorted(world.counts.items())))
