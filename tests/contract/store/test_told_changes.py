"""Engines that can tell other processes of a change do so at once. With a file they look every second."""

import pytest

from emceepee.store.store import ServerConfiguration, Store
from support.store.stored_sessions import head, store_session
from support.waiting import eventually

pytestmark = pytest.mark.parametrize("engine", ["memory", "redis", "cluster"], indirect=True)


async def test_the_others_hear_of_a_change_by_themselves(store: Store, other: Store) -> None:
    heard: list[str] = []
    store.on_shared_change = lambda: heard.append("store")
    other.on_shared_change = lambda: heard.append("other")
    await store.add_server(ServerConfiguration(principal="alice", name="ant", settings=b"{}"))
    await eventually(lambda: heard == ["other"], what="the other one has heard")
    await other.remove_server("alice", "ant")
    await eventually(lambda: heard == ["other", "store"], what="and the first one")
    await other.remove_server("alice", "ant")
    await store_session(store, head("s1"))
    await store.shared_revision()
    assert heard == ["other", "store"], "nothing else was a change"
