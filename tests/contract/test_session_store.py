"""What every SessionStore promises."""

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from emceepee.store.memory import MemorySessions
from emceepee.store.protocols import SessionStore, StaleRevision, StoredSession

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=[MemorySessions])
def store(request: pytest.FixtureRequest) -> SessionStore:
    make: Callable[[], SessionStore] = request.param
    return make()


def a_session(key: str = "s1", *, ends: int = 60, **state: Any) -> StoredSession:
    return StoredSession(session_id=key, principal="ann", expires_at=NOW + timedelta(seconds=ends), state=state)


async def expired(store: SessionStore, now: datetime) -> list[str]:
    return sorted([key async for key in store.expired(now)])


async def test_what_was_committed_is_loaded_as_it_was(store: SessionStore) -> None:
    state: dict[str, Any] = {"events": [{"id": "1", "data": {"x": None, "text": "ä\u2028"}}], "n": 2**60, "f": 0.5}
    committed = await store.commit(a_session(**state))
    assert committed == replace(a_session(**state), revision=1)
    assert await store.load("s1") == committed


async def test_a_session_that_was_never_committed_is_not_there(store: SessionStore) -> None:
    assert await store.load("s1") is None


async def test_each_commit_raises_the_revision(store: SessionStore) -> None:
    session = a_session()
    for revision in (1, 2, 3):
        session = await store.commit(replace(session, state={"n": revision}))
        assert session.revision == revision
    assert await store.load("s1") == session


async def test_a_commit_on_an_old_revision_is_refused_and_changes_nothing(store: SessionStore) -> None:
    first = await store.commit(a_session(n=1))
    second = await store.commit(replace(first, state={"n": 2}))
    with pytest.raises(StaleRevision):
        await store.commit(replace(first, state={"n": 3}))
    assert await store.load("s1") == second


async def test_of_two_who_create_the_same_session_one_is_refused(store: SessionStore) -> None:
    kept = await store.commit(a_session(by="first"))
    with pytest.raises(StaleRevision):
        await store.commit(a_session(by="second"))
    assert await store.load("s1") == kept


async def test_a_session_forgotten_meanwhile_does_not_come_back(store: SessionStore) -> None:
    session = await store.commit(a_session())
    await store.forget("s1")
    with pytest.raises(StaleRevision):
        await store.commit(session)
    assert await store.load("s1") is None


async def test_forgetting_what_is_not_there_is_no_error(store: SessionStore) -> None:
    await store.forget("s1")


async def test_sessions_do_not_touch_each_other(store: SessionStore) -> None:
    one, two = await store.commit(a_session("s1", n=1)), await store.commit(a_session("s2", n=2))
    await store.forget("s1")
    assert await store.load("s1") is None
    assert await store.load("s2") == two
    assert one.revision == two.revision == 1


async def test_a_session_is_expired_from_its_moment_on(store: SessionStore) -> None:
    for key, seconds in (("early", 10), ("later", 20)):
        await store.commit(a_session(key, ends=seconds))
    assert await expired(store, NOW + timedelta(seconds=9)) == []
    assert await expired(store, NOW + timedelta(seconds=10)) == ["early"]
    assert await expired(store, NOW + timedelta(seconds=99)) == ["early", "later"]


async def test_expired_sessions_can_be_forgotten_while_they_are_counted_up(store: SessionStore) -> None:
    for number in range(5):
        await store.commit(a_session(f"s{number}", ends=1))
    async for key in store.expired(NOW + timedelta(seconds=5)):
        await store.forget(key)
    assert await expired(store, NOW + timedelta(days=1)) == []
