"""A caller on standard input and output waits while another process holds its session."""

import asyncio
from typing import cast

import pytest

from emceepee.app.stdio_app import HELD_SECONDS, take_when_free
from emceepee.guard.caller_identity import LOCAL
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import HeldElsewhere, Store
from support.fakes.clock import FakeClock

KEY = SessionKey(LOCAL, KeyKind.NAME, "mine")


class HeldStore:
    """A store whose sessions are held by another process until a given time."""

    def __init__(self, clock: FakeClock, until: float) -> None:
        self._clock, self._until = clock, until
        self.taken = 0

    async def take(self, key: SessionKey) -> None:
        if self._clock.monotonic() < self._until:
            raise HeldElsewhere("Another emceepee holds this session.")
        self.taken += 1


async def test_a_session_that_another_process_holds_is_waited_for() -> None:
    clock = FakeClock()
    store = HeldStore(clock, until=HELD_SECONDS - 1)
    taking = asyncio.ensure_future(take_when_free(cast(Store, store), KEY, clock))
    await clock.advance(HELD_SECONDS)
    await asyncio.wait_for(taking, 5)
    assert store.taken == 1


async def test_a_session_that_stays_with_another_process_is_given_up_with_advice() -> None:
    clock = FakeClock()
    store = HeldStore(clock, until=1e9)
    taking = asyncio.ensure_future(take_when_free(cast(Store, store), KEY, clock))
    await clock.advance(HELD_SECONDS + 1)
    with pytest.raises(HeldElsewhere, match=r"holds this session\. .* --attach auto --session NAME"):
        await asyncio.wait_for(taking, 5)
