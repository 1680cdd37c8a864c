"""Which process is stopped to make room for another, and which is refused."""

import asyncio
from typing import cast

import pytest

from emceepee.backends.link import Link
from emceepee.backends.process.process_slots import PATIENCE_SECONDS, NoRoom, ProcessSlot, ProcessSlots
from emceepee.state.limits import Limits
from support.fakes.clock import FakeClock, settle


class Open:
    """A link with the attributes that process slots read."""

    def __init__(self) -> None:
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()


class Tenant:
    """A connection whose process ends when the test says so, or at once."""

    def __init__(self, house: "House", idle_seconds: float) -> None:
        self.house, self.idle_seconds = house, idle_seconds
        self.slot: ProcessSlot | None = None
        self.was_asked = False

    def give_way(self) -> None:
        self.was_asked, self.idle_seconds = True, 0
        assert self.slot is not None
        cast(Open, self.slot.link).closed.set_result("unused")
        if self.house.ends_at_once:
            self.house.slots.free(self.slot)


class House:
    def __init__(self, *, in_all: int = 4, per_principal: int = 3) -> None:
        limits = Limits(processes_in_all=in_all, processes_per_principal=per_principal)
        self.clock = FakeClock()
        self.slots = ProcessSlots(limits, self.clock)
        self.ends_at_once = True

    async def enter(self, principal: str, *, idle: float = 0) -> Tenant:
        tenant = Tenant(self, idle)
        async with asyncio.timeout(5):
            tenant.slot = await self.slots.occupy(principal, tenant)
        tenant.slot.link = cast(Link, Open())
        return tenant

    async def refuse(self, principal: str) -> str:
        """Return the error message for a principal that waited without success."""
        entering = asyncio.create_task(self.enter(principal))
        await self.clock.advance(PATIENCE_SECONDS + 1)
        with pytest.raises(NoRoom) as raised:
            await entering
        return str(raised.value)


async def test_the_process_idle_longest_is_stopped_when_its_principal_reaches_its_share() -> None:
    house = House()
    tenants = [await house.enter("ann", idle=idle) for idle in (5, 90, 30)]
    await house.enter("ann")
    assert [tenant.was_asked for tenant in tenants] == [False, True, False]


async def test_a_principal_whose_share_is_in_use_is_refused_while_others_still_get_processes() -> None:
    house = House()
    for _ in range(3):
        await house.enter("ann")
    assert "3 server processes run for you, which is the limit (processes_per_principal)" in await house.refuse("ann")
    await house.enter("bob")


async def test_idle_processes_of_the_largest_principal_are_stopped_for_another_principal() -> None:
    house = House()
    many = [await house.enter("ann", idle=1) for _ in range(3)]
    few = await house.enter("bob", idle=1000)
    await house.enter("cid")
    assert (sum(tenant.was_asked for tenant in many), few.was_asked) == (1, False)


async def test_idle_processes_of_a_small_principal_are_stopped_last_but_before_any_refusal() -> None:
    house = House()
    many = [await house.enter("ann", idle=idle) for idle in (1, 0)]
    few = await house.enter("bob", idle=1000)
    await house.enter("cid")
    await house.enter("ann")
    assert (many[0].was_asked, few.was_asked) == (True, False)
    await house.enter("ann")
    assert few.was_asked


async def test_a_new_process_is_refused_for_everyone_only_if_no_process_is_idle() -> None:
    house = House(in_all=2)
    await house.enter("ann")
    await house.enter("ann")
    assert "emceepee runs 2 processes, which is the limit (processes_in_all)" in await house.refuse("bob")


async def test_a_new_process_waits_briefly_for_another_one_to_become_idle() -> None:
    house = House(in_all=1)
    busy = await house.enter("ann")
    entering = asyncio.create_task(house.enter("bob"))
    await house.clock.advance(PATIENCE_SECONDS / 2)
    assert not entering.done()
    busy.idle_seconds = 0.1
    await house.clock.advance(PATIENCE_SECONDS / 2)
    await entering
    assert busy.was_asked


async def test_a_new_process_waits_until_the_stopped_one_has_ended() -> None:
    house = House(per_principal=2)
    house.ends_at_once = False
    leaving = [await house.enter("ann", idle=idle) for idle in (2, 1)]
    entering = [asyncio.create_task(house.enter("ann")) for _ in range(2)]
    await settle()
    assert [tenant.was_asked for tenant in leaving] == [True, True]
    assert not any(task.done() for task in entering)
    for tenant in leaving:
        assert tenant.slot is not None
        house.slots.free(tenant.slot)
    await asyncio.gather(*entering)
    await house.refuse("ann")
