"""A real emceepee that is killed at random moments under the load of eight callers, and what must hold then."""

import asyncio
import json
import os
import random
import sys
from collections import Counter
from pathlib import Path

from support.backends.counting_http import CountingBackend
from support.callers.restartable_process import restartable_process
from support.faults.kill_callers import KINDS, KillCaller, World
from support.figures import record_figure
from support.server_programs import puppet

STEPS = (5, 60)  # of the callers between a start and the next kill
LONGEST_MOMENT = 0.03  # seconds from a step to the kill: about as long as a step takes
LIMITS = {"events_per_session": 100_000, "events_in_all": 1_000_000, "http_retry_seconds": 0.05}


async def kills_under_load(state: Path, kills: int) -> Counter[str]:
    """Kill it so often while everyone calls. What was done and heard, counted.

    SEED in the environment repeats a run, as far as chance is to blame.
    """
    seed = int(os.environ.get("SEED") or random.randrange(1 << 32))
    record_figure(f"{kills} kills with SEED={seed}")
    backends = {"old": CountingBackend("legacy"), "new": CountingBackend("2026-07-28")}
    for backend in backends.values():
        backend.tools += ["hold", "notify"]
        await backend.start()
    try:
        env = {"EMCEEPEE_CONFIG": json.dumps({"limits": LIMITS})}
        async with restartable_process(state, "--log-level", "warn", env=env) as endpoint:
            world = World(endpoint, backends)
            callers = await _callers(world, state, seed)
            await _under_load(world, callers, kills, random.Random(seed))
            for caller in callers:
                await caller.settle()
            for caller in callers:
                await caller.check()
            await endpoint.stop()
    finally:
        for backend in backends.values():
            await backend.stop()
    for backend in backends.values():
        assert max(backend.ran.values()) == 1, "a call ran twice"
    counts = world.counts + _told(callers)
    record_figure("; ".join(f"{what}: {count}" for what, count in sorted(counts.items())))
    return counts


async def _callers(world: World, state: Path, seed: int) -> list[KillCaller]:
    offer = state / "offer.json"
    offer.write_text(json.dumps({"tools/list": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}}))
    callers = [
        KillCaller(world, kind, f"{kind} {number}", random.Random(f"{seed} {number}"))
        for number, kind in enumerate(KINDS)
    ]
    first = await world.endpoint.caller()
    for name, backend in world.backends.items():
        await first.value("add_server", name=name, url=backend.url)
    command = {"command": sys.executable, "args": ["-S", puppet.__file__, str(offer)]}
    await first.value("add_server", name="local", **command)
    for caller in callers:
        await caller.open()
    return callers


async def _under_load(world: World, callers: list[KillCaller], kills: int, chance: random.Random) -> None:
    world.serves.set()
    running = [asyncio.create_task(caller.run()) for caller in callers]
    try:
        for _ in range(kills):
            await _until_a_moment(world, running, chance)
            world.serves.clear()
            await world.endpoint.kill()
            await world.endpoint.start()
            world.serves.set()
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


def _told(callers: list[KillCaller]) -> Counter[str]:
    told: Counter[str] = Counter()
    for caller in callers:
        ledger = caller.ledger
        told["events"] += len(ledger.events)
        told["events told again after a fault"] += ledger.repeated
        told["timers"] += len(ledger.timers)
        told["notifications promised"] += len(ledger.notes)
        told["tasks promised"] += len(ledger.tasks)
        told["tasks completed"] += len(ledger.completed)
        told["rounds of intervals"] += len(ledger.of_type("timer_expired")) - len(ledger.timers)
    return told
