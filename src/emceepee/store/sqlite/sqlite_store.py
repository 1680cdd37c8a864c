"""The store in a file: SQLite, used by one thread, in the order of the calls.

SqliteStore ──▶ WorkQueue, the thread ──▶ Database.attempt ──▶ SqliteCommitter, tables: sessions, shared, secrets
                  joins commits             explains faults,      SQL
                                            reopens the file
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TypeVar

from emceepee.clock import Clock
from emceepee.state.replica import Replica
from emceepee.state.session_key import SessionKey
from emceepee.store.commit_statistics import CommitCounter, CommitStatistics
from emceepee.store.secret_box import StateKey
from emceepee.store.sqlite.database import Database
from emceepee.store.sqlite.database_seal import DatabaseSealing
from emceepee.store.sqlite.inline_commits import InlineCommits
from emceepee.store.sqlite.key_table import KeyTable
from emceepee.store.sqlite.owners import Owners
from emceepee.store.sqlite.secret_table import SecretTable
from emceepee.store.sqlite.session_table import FORGOTTEN_AT_ONCE, ChunkTable, SessionTable
from emceepee.store.sqlite.shared_tables import SharedTables
from emceepee.store.sqlite.sqlite_committer import SqliteCommitter
from emceepee.store.sqlite.work_queue import WorkQueue
from emceepee.store.store import (
    Commit,
    Lease,
    Sealer,
    ServerConfiguration,
    StoredLogin,
    StoredSecret,
    StoredSession,
    StoreError,
    StoreListener,
)

T = TypeVar("T")
Write = Callable[[], Sequence[Lease | None]]


class SqliteStore:
    """The store in a state file. Create one with `open`."""

    def __init__(self, path: Path, clock: Clock, *, key: str | None, survives_power_loss: bool, owners: Owners) -> None:
        self._clock = clock
        self._database = Database(path, clock, survives_power_loss=survives_power_loss, owners=owners)
        keys = KeyTable()
        self._committing = SqliteCommitter(self._database, keys, clock)
        self._sessions = SessionTable(self._database, keys)
        self._chunks = ChunkTable(self._database)
        self._sealing = DatabaseSealing(self._database, StateKey(path, key))
        self._shared = SharedTables(self._database, self._sealing)
        self._secrets = SecretTable(self._database, self._sealing)
        self._commits = CommitCounter()
        self._inline_commits = InlineCommits(clock, is_off=survives_power_loss)
        self._queue = WorkQueue(commit=self._commit, committed=self._count_commit, clock=clock)

    @classmethod
    async def open(
        cls,
        path: Path,
        clock: Clock,
        *,
        key: str | None = None,
        survives_power_loss: bool = False,
        address: str = "",
        slot: int | None = None,
    ) -> "SqliteStore":
        """Open the state file. Without `key`, secrets use the key in the key file beside it. Raises: StoreUnusable.

        Other replicas reach this one at `address`. Without `slot`, it gets the lowest free slot.
        """
        owners = Owners(path, address=address, slot=slot)
        store = cls(path, clock, key=key, survives_power_loss=survives_power_loss, owners=owners)
        try:
            await store._queue.run(store._open)
        except StoreError:
            await store._queue.close(lambda: None)
            raise
        return store

    @property
    def path(self) -> Path:
        return self._database.path

    @property
    def is_durable(self) -> bool:
        return True

    @property
    def is_quick(self) -> bool:
        return True

    def listen(self, listener: StoreListener) -> None:
        """Do nothing, because a file sends no notifications."""

    @property
    def commit_statistics(self) -> CommitStatistics:
        return self._commits.figures

    # Replicas.

    @property
    def sees_others(self) -> bool:
        return True

    @property
    def replica(self) -> Replica | None:
        return self._database.owners.replica

    @property
    def is_sure(self) -> bool:
        """Always True: the file lock of a live process protects its sessions, so no lease can expire."""
        return True

    @property
    def is_in_doubt(self) -> bool:
        return False

    async def confirm(self, leases: Mapping[str, Lease]) -> Collection[str]:
        return await self._run(partial(self._sessions.lost, leases))

    async def replicas(self) -> Sequence[Replica]:
        return await self._run(self._database.owners.replicas)

    async def announce_gone(self, epochs: Collection[int]) -> None:
        """Do nothing, because a file cannot send notifications."""

    async def replica_secret(self) -> bytes:
        return await self._run(self._shared.replica_secret)

    async def sealer(self) -> Sealer | None:
        return await self._run(self._shared.sealer)

    # Sessions.

    async def take(self, key: SessionKey) -> StoredSession | None:
        return await self._run(partial(self._sessions.take, key))

    async def create(self, commit: Commit) -> Lease | None:
        asked_at = self._clock.monotonic()
        leases = self._try_here([commit], partial(self._committing.create, commit))
        if leases is None:
            leases = await self._queue.run(partial(self._create, commit))
            self._count_commit(asked_at)
        return leases[0]

    async def take_due(self, now: datetime, most: int) -> Sequence[StoredSession]:
        return await self._run(partial(self._sessions.take_due, now, most))

    async def next_due(self) -> datetime | None:
        return await self._run(self._sessions.next_due)

    async def commit(self, commits: Sequence[Commit]) -> Sequence[Lease | None]:
        return await self._queue.commit(commits)

    def commit_now(self, commits: Sequence[Commit]) -> Sequence[Lease | None] | None:
        return self._try_here(commits, partial(self._committing.commit, commits))

    async def release(self, leases: Mapping[str, Lease]) -> None:
        await self._run(partial(self._sessions.release, leases))

    async def forget(self, session_id: str, lease: Lease) -> None:
        await self._run(partial(self._sessions.forget, session_id, lease))

    async def forget_expired(self, now: datetime, most: int) -> int:
        """Delete a few sessions per transaction, so that other work can run in between."""
        total = 0
        while (count := await self._run(partial(self._sessions.forget_expired, now, most))) == FORGOTTEN_AT_ONCE:
            total += count
        return total + count

    async def put_chunks(self, session_id: str, name: str, first: int, chunks: Sequence[bytes]) -> bool:
        return await self._run(partial(self._put_chunks, session_id, name, first, chunks))

    async def read_chunks(self, session_id: str, name: str, first: int, count: int) -> Sequence[bytes]:
        return await self._run(partial(self._chunks.read, session_id, name, first, count))

    async def drop_chunks(self, session_id: str, name: str, count: int) -> None:
        await self._run(partial(self._chunks.drop, session_id, name))

    # State that all processes share.

    async def shared_revision(self) -> int:
        return await self._run(self._shared.revision)

    async def servers_of(self, principal: str) -> Sequence[ServerConfiguration]:
        return await self._run(partial(self._shared.servers_of, principal))

    async def add_server(self, server: ServerConfiguration) -> None:
        await self._run(partial(self._shared.add_server, server))

    async def replace_server(self, server: ServerConfiguration) -> None:
        await self._run(partial(self._shared.replace_server, server))

    async def remove_server(self, principal: str, name: str) -> bool:
        return await self._run(partial(self._shared.remove_server, principal, name))

    async def logins(self) -> Sequence[StoredLogin]:
        return await self._run(self._shared.logins)

    async def add_login(self, login: StoredLogin) -> None:
        await self._run(partial(self._shared.add_login, login))

    async def end_login(self, digest: bytes) -> bool:
        return await self._run(partial(self._shared.end_login, digest))

    # Secrets.

    async def secrets_of(self, principal: str) -> Sequence[StoredSecret]:
        return await self._run(partial(self._secrets.secrets_of, principal))

    async def secret(self, principal: str, name: str) -> StoredSecret | None:
        return await self._run(partial(self._secrets.secret, principal, name))

    async def put_secret(self, principal: str, name: str, data: bytes, *, revision: int) -> int | None:
        return await self._run(partial(self._secrets.put, principal, name, data, revision))

    async def drop_secret(self, principal: str, name: str, *, revision: int) -> bool:
        return await self._run(partial(self._secrets.drop, principal, name, revision))

    async def lock(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        return await self._run(partial(self._secrets.lock, name, holder, now, until))

    async def unlock(self, name: str, holder: str) -> None:
        await self._run(partial(self._secrets.unlock, name, holder))

    async def announce_change(self) -> None:
        await self._run(self._shared.announce)

    # Lifecycle.

    async def close(self) -> None:
        await self._queue.close(self._close)

    async def _run(self, work: Callable[[], T]) -> T:
        return await self._queue.run(partial(self._database.attempt, work))

    def _open(self) -> None:
        self._database.open()
        try:
            self._database.attempt(self._sealing.check_key)
        except BaseException:
            self._database.close()
            raise

    def _try_here(self, commits: Sequence[Commit], work: Write) -> Sequence[Lease | None] | None:
        """Write in the event loop, or return None to leave the work to the thread."""
        if self._database.is_log_held or not self._inline_commits.is_good_for(commits):
            return None
        asked_at = self._clock.monotonic()
        leases = self._queue.do_here(partial(self._write_here, commits, work))
        if leases is not None:
            self._count_commit(asked_at)
        return leases

    def _write_here(self, commits: Sequence[Commit], work: Write) -> Sequence[Lease | None] | None:
        """Return None if the thread must retry, because another process writes or to report a fault."""
        try:
            with self._inline_commits.timed():
                leases = self._database.attempt(work, may_wait=False)
        except StoreError:
            return None
        if self._inline_commits.need_checkpoint(commits):
            self._queue.begin(self._database.checkpoint)
        return leases

    def _commit(self, commits: Sequence[Commit]) -> Sequence[Lease | None]:
        return self._write(partial(self._committing.commit, commits))

    def _create(self, commit: Commit) -> Sequence[Lease | None]:
        return self._write(partial(self._committing.create, commit))

    def _write(self, work: Write) -> Sequence[Lease | None]:
        self._database.attempt(self._database.check_log)
        return self._database.attempt(work)

    def _put_chunks(self, session_id: str, name: str, first: int, chunks: Sequence[bytes]) -> bool:
        self._database.check_log()
        return self._chunks.put(session_id, name, first, chunks)

    def _count_commit(self, asked_at: float) -> None:
        self._commits.add(self._clock.monotonic() - asked_at)

    def _close(self) -> None:
        with suppress(StoreError):  # the owner id is dead after this, which releases the sessions as well
            self._database.attempt(self._sessions.release_all)
        self._database.close()
