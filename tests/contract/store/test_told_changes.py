"""Engines with change notifications send them at once. With a file, processes poll every second."""

import pytest

from emceepee.store.store import ServerConfiguration, Store
from support.store.report_log import ReportLog
from support.store.stored_sessions import head, store_session
from support.waiting import eventually

pytestmark = pytest.mark.parametrize("engine", ["memory", "redis", "cluster"], indirect=True)


async def test_other_processes_are_notified_of_a_change(store: Store, other: Store) -> None:
    heard: list[str] = []
    store.listen(ReportLog("store", heard))
    other.listen(ReportLog("other", heard))
    await store.add_server(ServerConfiguration(principal="alice", name="ant", settings=b"{}"))
    await eventually(lambda: heard == ["other"], what="the other one has heard")
    await other.remove_server("alice", "ant")
    await eventually(lambda: heard == ["other", "store"], what="and the first one")
    await other.remove_server("alice", "ant")
    await store_session(store, head("s1"))
    await store.shared_revision()
    assert heard == ["other", "store"], "nothing else was a change"


async def test_other_replicas_are_notified_of_a_lost_replica(store: Store, other: Store) -> None:
    changes: list[str] = []
    log = ReportLog("other", changes)
    other.listen(log)
    await store.announce_gone({5, 1_000_000})
    await eventually(lambda: log.gone == [{5, 1_000_000}], what="the other one has heard")
    assert changes == [], "nothing that all share has changed"
