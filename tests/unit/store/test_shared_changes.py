"""Changes of one process reach the others at once with a notification, and within a second without one."""

import asyncio
from datetime import UTC, datetime

import pytest

from emceepee.store.memory_store import MemoryStore
from emceepee.store.shared_changes import POLL_SECONDS, SharedChanges
from emceepee.store.store import StoredLogin, StoreUnavailable
from support.fakes.clock import FakeClock, settle

LOGIN = StoredLogin(b"digest", "local", datetime(2100, 1, 1, tzinfo=UTC))


@pytest.mark.parametrize("is_told", [True, False])
async def test_a_shared_change_is_noticed_at_once_with_a_notification_and_otherwise_at_the_next_poll(
    is_told: bool,
) -> None:
    clock, store = FakeClock(), MemoryStore(is_durable=True)
    other, seen = store.another_process(), []

    async def reload() -> None:
        seen.append(await store.logins())

    changes = SharedChanges(store, clock, [reload], has_unsaved=lambda: False)
    running = asyncio.create_task(changes.run())
    await clock.advance(POLL_SECONDS)
    assert seen == [[]], "the first look finds what there is"
    if not is_told:
        store.listeners.clear()
    await other.add_login(LOGIN)
    await settle()
    assert (len(seen) == 2) is is_told
    await clock.advance(POLL_SECONDS)
    assert seen == [[], [LOGIN]]
    await clock.advance(10 * POLL_SECONDS)
    assert len(seen) == 2, "without a change nothing is read again"
    running.cancel()


async def test_watchers_of_shared_changes_are_called_again_until_they_succeed() -> None:
    clock, store = FakeClock(), MemoryStore(is_durable=True)
    called: list[int] = []
    unsaved: list[int] = []

    async def write() -> None:
        called.append(1)
        if len(called) % 3:
            raise StoreUnavailable("no room")
        unsaved.clear()

    changes = SharedChanges(store, clock, [write], has_unsaved=lambda: bool(unsaved))
    running = asyncio.create_task(changes.run())
    for _ in range(5):
        await clock.advance(POLL_SECONDS)
    assert len(called) == 3
    unsaved.append(1)
    for _ in range(5):
        await clock.advance(POLL_SECONDS)
    assert len(called) == 6
    running.cancel()
