"""Which principal gets the next worker, for any order and number of requests."""

import asyncio

import pytest

from emceepee.codemode.worker_slots import WorkerSlots
from support.fakes.clock import settle


class Line:
    """Records which principals got a worker, in order."""

    def __init__(self, slots: WorkerSlots) -> None:
        self.slots, self.got = slots, list[str]()

    async def ask(self, *principals: str) -> list["asyncio.Task[None]"]:
        asking = [asyncio.create_task(self._take(principal)) for principal in principals]
        await settle()
        return asking

    async def give_back(self, *principals: str) -> None:
        for principal in principals:
            self.slots.give_back(principal)
        await settle()

    async def _take(self, principal: str) -> None:
        await self.slots.take(principal)
        self.got.append(principal)


async def test_a_principal_uses_at_most_its_share_of_workers() -> None:
    line = Line(WorkerSlots(4, 3))
    waiting = await line.ask("a", "a", "a", "a", "a")
    assert line.got == ["a", "a", "a"]
    await line.ask("b")
    assert line.got[3:] == ["b"]
    await line.give_back("a", "b")
    assert line.got[4:] == ["a"]
    for task in waiting:
        task.cancel()


@pytest.mark.parametrize(("in_all", "share", "got"), [(1, 3, 1), (2, 3, 1), (3, 3, 2), (8, 3, 3), (4, 1, 1)])
async def test_the_share_of_a_principal_leaves_a_worker_for_others_if_there_are_several(
    in_all: int, share: int, got: int
) -> None:
    line = Line(WorkerSlots(in_all, share))
    waiting = await line.ask(*"aaaaaaaaa")
    assert len(line.got) == got
    for task in waiting:
        task.cancel()


async def test_principals_take_turns_and_the_one_with_the_fewest_workers_is_next() -> None:
    line = Line(WorkerSlots(1, 1))
    await line.ask("a", "a", "a", "b", "c", "b")
    for _ in range(5):
        await line.give_back(line.got[-1])
    assert line.got == ["a", "b", "c", "a", "b", "a"]
    line = Line(WorkerSlots(3, 2))
    waiting = await line.ask("a", "a", "b", "a", "b", "c")
    await line.give_back("a")
    assert line.got == ["a", "a", "b", "c"]
    for task in waiting:
        task.cancel()


async def test_a_cancelled_waiter_loses_its_turn_and_leaks_no_worker_slot() -> None:
    line = Line(WorkerSlots(1, 1))
    _, second, third, _ = await line.ask("a", "b", "b", "c")
    second.cancel()
    await settle()
    third.cancel()  # at the same time as its turn
    line.slots.give_back("a")
    await settle()
    assert line.got == ["a", "c"]
    (fifth,) = await line.ask("d")
    line.slots.give_back("c")
    fifth.cancel()  # it has its turn, and has not resumed yet
    await settle()
    assert (line.got, line.slots.taken) == (["a", "c"], 0)
