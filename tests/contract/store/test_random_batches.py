"""Random histories with kills: every engine behaves like the memory engine."""

import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emceepee.store.store import Commit, HeldElsewhere, Lease, RecordKey, Store
from support.store.store_engines import Engine, MemoryEngine, RedisEngine, SqliteEngine
from support.store.stored_sessions import HOUR, NOT_STORED, NOW, head, key
from support.system.redis_server import RedisServer

SESSIONS = ("s1", "s2", "s3")
PROCESSES = 2
_sessions, _processes = st.sampled_from(SESSIONS), st.integers(0, PROCESSES - 1)
_records = st.builds(RecordKey, st.sampled_from(["event", "task"]), st.sampled_from(["1", "2", "3", ""]))
_keys = st.frozensets(st.sampled_from([key(name) for name in (*SESSIONS, "shared", "other")]), max_size=3)
_moments = st.integers(0, 3).map(lambda hours: NOW + hours * HOUR)


@dataclass(frozen=True)
class Change:
    """A commit without its lease: with the last one known to its process, or an old one."""

    session_id: str
    keys: frozenset[Any]
    puts: dict[RecordKey, bytes]
    deletes: frozenset[RecordKey]
    expires_at: Any
    due_at: Any
    is_stale: bool


_changes = st.builds(
    Change,
    session_id=_sessions,
    keys=_keys,
    puts=st.dictionaries(_records, st.binary(max_size=8), max_size=3),
    deletes=st.frozensets(_records, max_size=3),
    expires_at=_moments,
    due_at=st.none() | _moments,
    is_stale=st.booleans().filter(lambda stale: not stale) | st.booleans(),
)
_actions = st.one_of(
    st.tuples(st.just("commit"), _processes, st.lists(_changes, min_size=1, max_size=4)),
    st.tuples(st.just("take"), _processes, st.sampled_from([key(name) for name in (*SESSIONS, "shared")])),
    st.tuples(st.just("take_due"), _processes, st.tuples(_moments, st.integers(1, 3))),
    st.tuples(st.just("next_due"), _processes, st.none()),
    st.tuples(st.just("release"), _processes, _sessions),
    st.tuples(st.just("forget"), _processes, _sessions),
    st.tuples(st.just("forget_expired"), _processes, st.tuples(_moments, st.integers(0, 3))),
    st.tuples(st.just("kill"), _processes, st.none()),
    st.tuples(st.just("close"), _processes, st.none()),
)


class History:
    """Processes on one engine, each with the leases that it was given."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._stores: list[Store] = []
        self._leases: list[dict[str, Lease]] = [{} for _ in range(PROCESSES)]

    async def begin(self) -> None:
        self._stores = [await self._engine.open() for _ in range(PROCESSES)]

    async def act(self, verb: str, process: int, what: Any) -> object:
        """Return the outcome in a form that can be compared."""
        store, leases = self._stores[process], self._leases[process]
        match verb:
            case "commit":
                return await self._commit(store, leases, what)
            case "take":
                try:
                    found = await store.take(what)
                except HeldElsewhere:
                    return "held"
                if found is not None:
                    leases[found.head.session_id] = found.lease
                return found
            case "take_due":
                due = await store.take_due(*what)
                leases.update({found.head.session_id: found.lease for found in due})
                return sorted(due, key=lambda found: found.head.session_id) if len(due) < what[1] else len(due)
            case "release":
                await store.release({what: leases.get(what, NOT_STORED)})
                return None
            case "forget":
                await store.forget(what, leases.pop(what, NOT_STORED))
                return None
            case "kill" | "close":
                await (store.close() if verb == "close" else self._engine.kill(store))
                self._stores[process] = await self._engine.open()
                return None
            case "next_due":
                return await store.next_due()
            case _:
                return await store.forget_expired(*what)

    async def _commit(self, store: Store, leases: dict[str, Lease], changes: Sequence[Change]) -> object:
        commits = []
        for each in changes:
            lease = leases.get(each.session_id, NOT_STORED)
            if each.is_stale:
                lease = Lease(lease.fence, max(0, lease.revision - 1))
            of = head(each.session_id, *each.keys, expires_at=each.expires_at, due_at=each.due_at)
            commits.append(Commit(head=of, lease=lease, puts=each.puts, deletes=each.deletes))
        made = await store.commit(commits)
        leases.update({each.session_id: lease for each, lease in zip(changes, made, strict=True) if lease is not None})
        return made

    async def end(self) -> None:
        for store in self._stores:
            await store.close()


# Where several are equally early, which of them are taken or forgotten is not promised: those moments are apart.
def apart(actions: list[tuple[str, int, Any]]) -> list[tuple[str, int, Any]]:
    number = {name: index for index, name in enumerate(SESSIONS)}
    moved = []
    for verb, process, what in actions:
        if verb == "commit":
            what = [
                Change(
                    **{
                        **each.__dict__,
                        "expires_at": each.expires_at + number[each.session_id] * HOUR / 10,
                        "due_at": each.due_at and each.due_at + number[each.session_id] * HOUR / 10,
                    }
                )
                for each in what
            ]
        moved.append((verb, process, what))
    return moved


_histories = st.lists(_actions, max_size=25).map(apart)


async def compare_with_memory(engine: Engine, actions: list[tuple[str, int, Any]]) -> None:
    model, tried = History(MemoryEngine()), History(engine)
    for each in (model, tried):
        await each.begin()
    try:
        for action in actions:
            assert await tried.act(*action) == await model.act(*action), action
        for name in SESSIONS:
            for process in range(PROCESSES):
                action = ("take", process, key(name))
                assert await tried.act(*action) == await model.act(*action)
    finally:
        for each in (model, tried):
            await each.end()


@settings(max_examples=150)
@given(actions=_histories)
async def test_sqlite_behaves_like_the_memory_engine_in_random_histories(actions: list[tuple[str, int, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        await compare_with_memory(SqliteEngine(Path(folder) / "state.db"), actions)


@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(actions=_histories)
async def test_redis_behaves_like_the_memory_engine_in_random_histories(
    redis: RedisServer, actions: list[tuple[str, int, Any]]
) -> None:
    await compare_with_memory(RedisEngine(redis), actions)
