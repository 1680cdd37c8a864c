"""What every ReplayStore promises."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from emceepee.store.memory import MemoryReplay
from emceepee.store.protocols import ReplayStore, StoredMessage

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture(params=[MemoryReplay])
def store(request: pytest.FixtureRequest) -> ReplayStore:
    make: Callable[[], ReplayStore] = request.param
    return make()


def a_message(key: str, stream: str = "main", **more: bool) -> StoredMessage:
    return StoredMessage(event_id=key, stream=stream, data=f"data of {key}\n\xff".encode(), **more)


async def keep(store: ReplayStore, *messages: StoredMessage, session: str = "s1") -> None:
    for second, message in enumerate(messages):
        await store.append(session, message, at=NOW + timedelta(seconds=second))


async def prune(store: ReplayStore, *, seconds: int = 0, most: int = 1000) -> None:
    await store.prune("s1", older_than=NOW + timedelta(seconds=seconds), most=most)


async def keys(store: ReplayStore, after: str, session: str = "s1") -> list[str]:
    return [message.event_id for message in await store.after(session, after)]


async def test_what_came_after_an_event_comes_back_whole_and_in_order(store: ReplayStore) -> None:
    messages = [a_message("z"), a_message("b"), a_message("a", is_final=True)]
    await keep(store, *messages)
    assert await store.after("s1", "z") == messages[1:]
    assert await store.after("s1", "a") == []


async def test_only_the_events_own_stream_is_replayed(store: ReplayStore) -> None:
    await keep(store, a_message("1", "x"), a_message("2", "y"), a_message("3", "x"), a_message("4", "y"))
    assert await keys(store, "1") == ["3"]
    assert await keys(store, "2") == ["4"]


async def test_an_event_is_found_by_its_stream_and_an_unknown_one_is_not(store: ReplayStore) -> None:
    await keep(store, a_message("1", "x"))
    assert await store.stream_of("s1", "1") == "x"
    assert await store.stream_of("s1", "2") is None
    assert await store.stream_of("s2", "1") is None
    assert await keys(store, "2") == []


async def test_sessions_do_not_see_each_others_messages(store: ReplayStore) -> None:
    await keep(store, a_message("1"), a_message("2"))
    await keep(store, a_message("1"), a_message("other"), session="s2")
    assert await keys(store, "1") == ["2"]
    assert await keys(store, "1", "s2") == ["other"]
    await store.forget("s1")
    assert await store.stream_of("s1", "1") is None
    assert await keys(store, "1", "s2") == ["other"]


async def test_what_is_too_old_is_pruned_and_what_is_just_old_enough_stays(store: ReplayStore) -> None:
    await keep(store, a_message("0"), a_message("1"), a_message("2"))
    await prune(store, seconds=1)
    assert await store.stream_of("s1", "0") is None
    assert await keys(store, "1") == ["2"]


async def test_of_too_many_the_newest_stay(store: ReplayStore) -> None:
    await keep(store, *(a_message(str(number)) for number in range(5)))
    await prune(store, most=2)
    assert await keys(store, "2") == []
    assert await keys(store, "3") == ["4"]
    await prune(store, most=0)
    assert await store.stream_of("s1", "4") is None


async def test_pruning_or_forgetting_what_is_not_there_is_no_error(store: ReplayStore) -> None:
    await prune(store)
    await store.forget("s1")
    assert await keys(store, "1") == []
