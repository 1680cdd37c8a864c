"""Faults that are done to real processes: what was planned happens, and is in the timeline."""

import asyncio
from collections.abc import Iterable
from typing import Protocol

from support.callers.restartable_process import RestartableProcess
from support.faults.chaos_schedule import PlannedFault
from support.faults.findings import Rule
from support.faults.timeline import STORE, FaultKind, moment
from support.faults.world import World
from support.system.processes import below, is_alive
from support.waiting import eventually

OTHERS_WITHIN = 20.0  # seconds: a fault that cannot come by then does not come
START_WITHIN = 60.0  # seconds, in which a process is started again and again, as its supervisor would


class StoreServer(Protocol):
    """The server behind the store; each call returns when it is done."""

    def start(self) -> None: ...

    def kill(self) -> None: ...

    def pause(self) -> None: ...

    def resume(self) -> None: ...


class Inflicter:
    """One fault at a time for each process, and none for the last that is at work."""

    def __init__(self, world: World, store: StoreServer | None) -> None:
        self._world, self._store = world, store
        self._turns = {number: asyncio.Lock() for number in (STORE, *range(len(world.processes)))}
        self._at_work = set(range(len(world.processes)))

    async def carry_out(self, schedule: Iterable[PlannedFault]) -> None:
        """Returns when the last is over, and everything runs; or when the world is over."""
        began = moment()
        async with asyncio.TaskGroup() as tasks:
            for fault in schedule:
                await asyncio.sleep(max(began + fault.at - moment(), 0))  # faults come in real time
                if self._world.is_over:
                    break
                tasks.create_task(self._inflict(fault))

    async def _inflict(self, fault: PlannedFault) -> None:
        async with self._turns[fault.target]:
            if fault.target != STORE and not await self._others_work():
                self._world.counts["faults left out, as nobody else was at work"] += 1
                return
            self._at_work.discard(fault.target)
            self._world.counts[str(fault.kind)] += 1
            match fault.kind:
                case FaultKind.PAUSE:
                    await self._pause(fault)
                case FaultKind.KILL | FaultKind.STOP:
                    await self._end(fault)
                    await asyncio.sleep(fault.seconds)  # it is away for a while
                    await self._start(self._world.processes[fault.target])
                    self._world.out_of_service.discard(fault.target)
                case FaultKind.STORE_KILL | FaultKind.STORE_PAUSE:
                    await self._take_the_store_away(fault)
            if fault.target != STORE:
                self._at_work.add(fault.target)

    async def _others_work(self) -> bool:
        """Whether another process is at work, or is within a while: a start takes long where a machine is busy."""
        is_alone = len(self._world.processes) == 1
        try:
            await eventually(lambda: is_alone or len(self._at_work) > 1, within=OTHERS_WITHIN)
        except AssertionError:
            return False
        return True

    async def _pause(self, fault: PlannedFault) -> None:
        process = self._world.processes[fault.target]
        with self._world.timeline.fault(fault.kind, fault.target):
            process.pause()
            try:
                await asyncio.sleep(fault.seconds)  # that is what a pause is
            finally:
                process.resume()

    async def _end(self, fault: PlannedFault) -> None:
        process = self._world.processes[fault.target]
        started = below(process.process.pid)
        self._world.out_of_service.add(fault.target)
        with self._world.timeline.fault(fault.kind, fault.target):
            try:
                await (process.kill() if fault.kind is FaultKind.KILL else process.stop())
            except (AssertionError, TimeoutError) as error:
                self._world.findings.add(Rule.NOTHING_LEFT, f"{fault}: {error!r}")
                process.process.kill()
        try:
            await eventually(lambda: not any(map(is_alive, started)), what=f"what {fault.target} started has ended")
        except AssertionError as error:
            self._world.findings.add(Rule.NOTHING_LEFT, str(error))

    async def _start(self, process: RestartableProcess) -> None:
        """As often as it takes: without its store it may refuse to."""

        async def starts() -> bool:
            try:
                await process.start()
            except AssertionError:
                self._world.counts["starts that were refused"] += 1
                return False
            return True

        await eventually(starts, what="it starts", within=START_WITHIN)

    async def _take_the_store_away(self, fault: PlannedFault) -> None:
        assert self._store is not None
        with self._world.timeline.fault(fault.kind, STORE):
            if fault.kind is FaultKind.STORE_PAUSE:
                self._store.pause()
            else:
                self._store.kill()
            try:
                await asyncio.sleep(fault.seconds)  # everything goes on without it
            finally:
                await asyncio.to_thread(
                    self._store.resume if fault.kind is FaultKind.STORE_PAUSE else self._store.start
                )
