"""The store in Redis. The docstring of the package explains its parts."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from datetime import datetime

from emceepee.clock import Clock
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner, close_bounded
from emceepee.state.replica import Replica
from emceepee.state.session_key import SessionKey
from emceepee.store.commit_statistics import CommitCounter, CommitStatistics
from emceepee.store.redis.connection.change_listener import ChangeListener, gone_message
from emceepee.store.redis.connection.commands import Commands, UnknownOutcome, run_command
from emceepee.store.redis.connection.redis_access import OPEN_SECONDS, RedisAccess, check_format, reach
from emceepee.store.redis.connection.redis_address import RedisAddress
from emceepee.store.redis.held_sessions import HeldSessions
from emceepee.store.redis.keys import CLUSTER_PARTITIONS, KeyNames
from emceepee.store.redis.redis_committer import RedisCommitter
from emceepee.store.redis.secrets import Secrets
from emceepee.store.redis.session_hashes import Chunks, Sessions
from emceepee.store.redis.shared import SharedState
from emceepee.store.redis.slot_lease import SlotLease
from emceepee.store.redis.state_key import SharedKey
from emceepee.store.redis.unconfirmed_commits import UnconfirmedCommits
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
    StoreListeners,
    StoreUnavailable,
    StoreUnusable,
)

CLOSE_SECONDS = 5.0


class RedisStore:
    """The store in Redis. Create one with `open`."""

    def __init__(
        self,
        access: RedisAccess,
        clock: Clock,
        *,
        names: KeyNames,
        key: SharedKey,
        lease: SlotLease,
        listeners: StoreListeners,
    ) -> None:
        self._commands: Commands = access.commands
        self._clock, self._names, self._key, self._lease = clock, names, key, lease
        self._held_sessions, unconfirmed_commits = HeldSessions(), UnconfirmedCommits()
        self._committing = RedisCommitter(self._commands, names, clock, lease, self._held_sessions, unconfirmed_commits)
        self._sessions = Sessions(self._commands, names, lease, self._held_sessions, unconfirmed_commits)
        self._chunks = Chunks(self._commands, names, self._held_sessions)
        self._shared = SharedState(self._commands, names, key, teller=lease.epoch)
        self._secrets = Secrets(self._commands, names, key, lease)
        self._listener = ChangeListener(
            access.connect,
            clock,
            channel=names.channel,
            teller=lease.epoch,
            listener=listeners,
        )
        self._tasks = TaskOwner("redis-lease")
        self._commits = CommitCounter()
        self._is_closed = False
        self._listeners = listeners

    @classmethod
    async def open(
        cls,
        redis: RedisAddress,
        clock: Clock,
        *,
        key: str | None = None,
        address: str = "",
        slot: int | None = None,
        lease_seconds: float = 5.0,
        patience: float = OPEN_SECONDS,
    ) -> "RedisStore":
        """Connect and claim a slot. Other replicas reach this one at `address`. Raises: StoreUnusable."""
        shared_key = SharedKey(redis, key)
        access = await reach(redis, clock, patience)
        commands, listeners = access.commands, StoreListeners()
        names = KeyNames(redis.prefix, CLUSTER_PARTITIONS if commands.is_spread else 1)
        try:
            await check_format(commands, names, redis)
            lease = await SlotLease.claim(
                commands,
                names,
                clock,
                redis=redis,
                address=address,
                slot=slot,
                lease_seconds=lease_seconds,
                listener=listeners,
            )
            try:
                others = [each for each in (await lease.roster()).alive.values() if each != lease.replica]
                await shared_key.check(commands, names, is_alone=not others)
                store = cls(access, clock, names=names, key=shared_key, lease=lease, listeners=listeners)
                await store._listener.open()
            except BaseException:
                with suppress(StoreError, UnknownOutcome):
                    await lease.leave()
                raise
        except BaseException as error:
            await commands.close()
            if isinstance(error, StoreUnusable) or not isinstance(error, Exception):
                raise
            raise access.unusable(error) from error
        access.warn()
        store._tasks.spawn(lease.run(), name="renew")
        store._tasks.spawn(lease.watch(), name="watch")
        return store

    @property
    def is_durable(self) -> bool:
        return True

    @property
    def is_quick(self) -> bool:
        return False

    def listen(self, listener: StoreListener) -> None:
        self._listeners.add(listener)

    @property
    def commit_statistics(self) -> CommitStatistics:
        return self._commits.figures

    # Replicas.

    @property
    def sees_others(self) -> bool:
        return False

    @property
    def replica(self) -> Replica | None:
        return self._lease.replica

    @property
    def is_sure(self) -> bool:
        return self._lease.is_sure

    @property
    def is_in_doubt(self) -> bool:
        return self._lease.is_in_doubt

    async def confirm(self, leases: Mapping[str, Lease]) -> Collection[str]:
        term = await self._lease.renew()
        lost = await self._sessions.hand_to(self._lease.owner, leases)
        self._lease.confirm(term)
        for session_id in lost:
            self._held_sessions.drop(session_id, leases[session_id].fence)
        return lost

    async def replicas(self) -> Sequence[Replica]:
        try:
            roster = await self._lease.roster()
        except UnknownOutcome as error:
            raise error.because from None
        return [roster.alive[slot] for slot in sorted(roster.alive)]

    async def announce_gone(self, epochs: Collection[int]) -> None:
        await run_command(self._commands, "PUBLISH", self._names.channel, gone_message(epochs))

    async def replica_secret(self) -> bytes:
        try:
            return await self._key.signing_secret(self._commands, self._names)
        except UnknownOutcome as error:
            raise error.because from None

    async def sealer(self) -> Sealer | None:
        return self._key.box

    # Sessions.

    async def take(self, key: SessionKey) -> StoredSession | None:
        return await self._sessions.take(key)

    async def create(self, commit: Commit) -> Lease | None:
        (lease,) = await self._commit([commit], is_strict=True)
        return lease

    async def take_due(self, now: datetime, most: int) -> Sequence[StoredSession]:
        return await self._sessions.take_due(now, most)

    async def next_due(self) -> datetime | None:
        return await self._sessions.next_due()

    async def commit(self, commits: Sequence[Commit]) -> Sequence[Lease | None]:
        return await self._commit(commits)

    def commit_now(self, commits: Sequence[Commit]) -> Sequence[Lease | None] | None:
        """Return None, because every commit waits for Redis."""
        return None

    async def release(self, leases: Mapping[str, Lease]) -> None:
        await self._sessions.release(leases)

    async def forget(self, session_id: str, lease: Lease) -> None:
        await self._sessions.forget(session_id, lease)

    async def forget_expired(self, now: datetime, most: int) -> int:
        await self._shared.forget_logins(now)
        return await self._sessions.forget_expired(now, most)

    async def put_chunks(self, session_id: str, name: str, first: int, chunks: Sequence[bytes]) -> bool:
        return await self._chunks.put(session_id, name, first, chunks)

    async def read_chunks(self, session_id: str, name: str, first: int, count: int) -> Sequence[bytes]:
        return await self._chunks.read(session_id, name, first, count)

    async def drop_chunks(self, session_id: str, name: str, count: int) -> None:
        await self._chunks.drop(session_id, name, count)

    # State that all processes share.

    async def shared_revision(self) -> int:
        return await self._shared.revision()

    async def servers_of(self, principal: str) -> Sequence[ServerConfiguration]:
        return await self._shared.servers_of(principal)

    async def add_server(self, server: ServerConfiguration) -> None:
        await self._shared.add_server(server)

    async def replace_server(self, server: ServerConfiguration) -> None:
        await self._shared.replace_server(server)

    async def remove_server(self, principal: str, name: str) -> bool:
        return await self._shared.remove_server(principal, name)

    async def logins(self) -> Sequence[StoredLogin]:
        return await self._shared.logins()

    async def add_login(self, login: StoredLogin) -> None:
        await self._shared.add_login(login)

    async def end_login(self, digest: bytes) -> bool:
        return await self._shared.end_login(digest)

    # Secrets.

    async def secrets_of(self, principal: str) -> Sequence[StoredSecret]:
        return await self._secrets.secrets_of(principal)

    async def secret(self, principal: str, name: str) -> StoredSecret | None:
        return await self._secrets.secret(principal, name)

    async def put_secret(self, principal: str, name: str, data: bytes, *, revision: int) -> int | None:
        return await self._secrets.put(principal, name, data, revision)

    async def drop_secret(self, principal: str, name: str, *, revision: int) -> bool:
        return await self._secrets.drop(principal, name, revision)

    async def lock(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        return await self._secrets.lock(name, holder, now, until)

    async def unlock(self, name: str, holder: str) -> None:
        await self._secrets.unlock(name, holder)

    async def announce_change(self) -> None:
        await self._shared.announce()

    # Lifecycle.

    async def close(self) -> None:
        if self._is_closed:
            return
        self._is_closed = True
        await self._tasks.close(within=CLOSE_IDLE_SECONDS)
        await self._listener.close()
        await close_bounded(self._leave(), within=CLOSE_SECONDS, what="state in Redis")
        await self._commands.close()

    async def _leave(self) -> None:
        with suppress(StoreUnavailable, UnknownOutcome):  # the lease expires, which releases the sessions as well
            await self._sessions.release(self._held_sessions.leases())
            await self._lease.leave()

    async def _commit(self, commits: Sequence[Commit], *, is_strict: bool = False) -> list[Lease | None]:
        asked_at = self._clock.monotonic()
        leases = await self._committing.commit(commits, is_strict=is_strict) if commits else []
        self._commits.add(self._clock.monotonic() - asked_at)
        return leases
