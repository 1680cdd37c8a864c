"""A real emceepee that is killed at random moments under the load of eight callers, and what must hold then."""

import asyncio
import json
import os
import random
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from support.backends.counting_http import CountingBackend
from support.callers.restartable_process import restartable_process
from support.faults import ledger
from support.faults.fault_callers import FaultCaller
from support.faults.session_caller import KINDS
from support.faults.settling import check, settle
from support.faults.timeline import FaultKind
from support.faults.world import World
from support.figures import record_figure
from support.server_programs import puppet

STEPS = (5, 60)  # of the callers between a start and the next kill
LONGEST_MOMENT = 0.03  # seconds from a step to the kill: about as long as a step takes
# Nothing is forgotten before its end, and a server is back soon.
LIMITS = {
    "events_per_session": 100_000,
    "events_in_all": 1_000_000,
    "http_retry_seconds": 0.05,
    "task_retention_seconds": 7200,
    "unused_session_seconds": 7200,
    "sessions_per_principal": 10_000,
}


async def kills_under_load(state: Path, kills: int) -> Counter[str]:
    """Kill emceepee `kills` times while callers use it. Return counts of actions and answers.

    SEED in the environment repeats a run, as far as chance is to blame.
    """
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    record_figure(f"{kills} kills with SEED={seed}")
    env = {"EMCEEPEE_CONFIG": json.dumps({"limits": LIMITS})}
    async with (
        counting_backends() as backends,
        restartable_process(state, "--log-level", "warn", env=env) as endpoint,
    ):
        world = World([endpoint], backends)
        callers = await open_callers(world, state, seed, KINDS)
        await _under_load(world, callers, kills, random.Random(seed))
        for caller in callers:
            await settle(caller)
        for caller in callers:
            await check(caller)
        await endpoint.stop()
    assert not world.findings.found, str(world.findings)
    counts = world.counts + ledger.count(caller.ledger for caller in callers)
    record_figure("; ".join(f"{what}: {count}" for what, count in sorted(counts.items())))
    return counts


@asynccontextmanager
async def counting_backends() -> AsyncIterator[dict[str, CountingBackend]]:
    """One of each era. At the end nothing may have run twice."""
    backends = {"old": CountingBackend("legacy"), "new": CountingBackend("2026-07-28")}
    for backend in backends.values():
        backend.tools += ["hold", "notify"]
        await backend.start()
    try:
        yield backends
    finally:
        for backend in backends.values():
            await backend.stop()
    for backend in backends.values():
        assert max(backend.ran.values()) == 1, "a call ran twice"


async def open_callers(world: World, folder: Path, seed: int, kinds: Sequence[str]) -> list[FaultCaller]:
    """Each with a session, and three servers that all of them may call."""
    offer = folder / "offer.json"
    offer.write_text(json.dumps({"tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}}))
    callers = [
        FaultCaller(world, kind, f"{kind} {number}", random.Random(f"{seed} {number}"))
        for number, kind in enumerate(kinds)
    ]
    first = await world.processes[0].caller(**world.headers)
    for name, backend in world.backends.items():
        await first.value("add_server", name=name, url=backend.url)
    command = {"command": sys.executable, "args": ["-S", puppet.__file__, str(offer)]}
    await first.value("add_server", name="local", **command)
    for caller in callers:
        await caller.open()
    return callers


async def _under_load(world: World, callers: list[FaultCaller], kills: int, chance: random.Random) -> None:
    (endpoint,) = world.processes
    running = [asyncio.create_task(caller.run()) for caller in callers]
    try:
        for _ in range(kills):
            await _until_a_moment(world, running, chance)
            world.out_of_service.add(0)
            with world.timeline.fault(FaultKind.KILL, 0):
                await endpoint.kill()
            await endpoint.start()
            world.out_of_service.clear()
        await _until_a_moment(world, running, chance)
        world.is_over = True
        async with asyncio.timeout(60):
            await asyncio.gather(*running)
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _until_a_moment(world: World, running: "list[asyncio.Task[None]]", chance: random.Random) -> None:
    """After some more steps, and somewhere within the next one."""
    enough = world.steps + chance.randint(*STEPS)
    async with asyncio.timeout(60):
        while world.steps < enough:
            world.progressed.clear()
            await world.progressed.wait()
            for task in running:
                if task.done():
                    task.result()  # a caller that has failed fails the test
    world.progressed.clear()
    stepping = asyncio.create_task(world.progressed.wait())
    await asyncio.wait({stepping}, timeout=chance.uniform(0, LONGEST_MOMENT))
    stepping.cancel()
