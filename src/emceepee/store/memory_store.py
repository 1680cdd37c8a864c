"""The store in memory, for state that ends with the process. It is also the reference model for the other engines.

With `another_process`, several stores share one memory, as processes share a file. `die` simulates a killed process,
and `paused` a process that others take for dead.
"""

import secrets
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import count, takewhile
from typing import NamedTuple

from emceepee.state.replica import Replica
from emceepee.state.session_key import SessionKey
from emceepee.store.secret_box import SecretBox
from emceepee.store.store import (
    Commit,
    HeldElsewhere,
    Lease,
    NameTaken,
    RecordKey,
    Sealer,
    ServerConfiguration,
    SessionHead,
    StoredLogin,
    StoredSecret,
    StoredSession,
    StoreListener,
    StoreListeners,
    StoreUnavailable,
)

_HELD = "Another process holds this session. Use that process, or stop it."


@dataclass(slots=True)
class _Row:
    """A session and its holder. The head contains only the keys that the session has gained."""

    head: SessionHead
    owner: int | None  # the epoch of a process
    fence: int = 1
    revision: int = 1
    records: dict[RecordKey, bytes] = field(default_factory=dict)


class _Lock(NamedTuple):
    holder: str
    until: datetime
    owner: int  # the epoch of a process


@dataclass(slots=True)
class _Memory:
    """The state that all processes share."""

    sessions: dict[str, _Row] = field(default_factory=dict)
    keys: dict[SessionKey, str] = field(default_factory=dict)
    chunks: dict[str, dict[tuple[str, int], bytes]] = field(default_factory=dict)  # by session, then name and number
    servers: dict[tuple[str, str], ServerConfiguration] = field(default_factory=dict)
    logins: dict[bytes, StoredLogin] = field(default_factory=dict)
    secrets: dict[tuple[str, str], StoredSecret] = field(default_factory=dict)
    secret_revisions: Iterable[int] = field(default_factory=lambda: count(1))
    locks: dict[str, "_Lock"] = field(default_factory=dict)
    revision: int = 0
    alive: dict[int | None, Replica] = field(default_factory=dict)  # by epoch
    watching: "list[MemoryStore]" = field(default_factory=list)
    epochs: Iterable[int] = field(default_factory=lambda: count(1))
    secret: bytes = field(default_factory=lambda: secrets.token_bytes(32))

    def lowest_free_slot(self) -> int:
        taken = {replica.slot for replica in self.alive.values()}
        return next(slot for slot in count() if slot not in taken)

    def changed(self, by: "MemoryStore") -> None:
        self.revision += 1
        for store in self.watching:
            if store is not by:
                store.listeners.handle_shared_change()


class MemoryStore:
    """One process that uses a memory. `is_durable` lets tests simulate a restart."""

    def __init__(self, *, is_durable: bool = False, address: str = "", _memory: _Memory | None = None) -> None:
        self._is_durable = is_durable
        self._memory = memory = _Memory() if _memory is None else _memory
        self._owner = next(iter(memory.epochs))
        self._replica = Replica(slot=memory.lowest_free_slot(), epoch=self._owner, address=address)
        memory.alive[self._owner] = self._replica
        memory.watching.append(self)
        self.listeners = StoreListeners()

    def another_process(self, address: str = "") -> "MemoryStore":
        """Return a store for another process that uses the same memory."""
        return MemoryStore(is_durable=self._is_durable, address=address, _memory=self._memory)

    def die(self) -> None:
        """Stop at once, like a killed process."""
        self._memory.alive.pop(self._owner, None)
        self.listeners.clear()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Count as dead within the block, like a process that does not run: others may take its sessions."""
        del self._memory.alive[self._owner]
        try:
            yield
        finally:
            self._memory.alive[self._owner] = self._replica

    def listen(self, listener: StoreListener) -> None:
        self.listeners.add(listener)

    @property
    def is_durable(self) -> bool:
        return self._is_durable

    @property
    def is_quick(self) -> bool:
        return True

    # Replicas.

    @property
    def sees_others(self) -> bool:
        return True

    @property
    def replica(self) -> Replica | None:
        return self._replica if self._is_durable else None

    @property
    def is_sure(self) -> bool:
        return True

    @property
    def is_in_doubt(self) -> bool:
        return False

    async def confirm(self, leases: Mapping[str, Lease]) -> Collection[str]:
        return [session_id for session_id, lease in leases.items() if self._own(session_id, lease) is None]

    async def replicas(self) -> Sequence[Replica]:
        return list(self._open().alive.values())

    async def announce_gone(self, epochs: Collection[int]) -> None:
        for store in self._open().watching:
            if store is not self:
                store.listeners.handle_replicas_gone(epochs)

    async def replica_secret(self) -> bytes:
        return self._open().secret

    async def sealer(self) -> Sealer | None:
        return SecretBox(self._open().secret)

    # Sessions.

    async def take(self, key: SessionKey) -> StoredSession | None:
        memory = self._open()
        if (session_id := memory.keys.get(key)) is None:
            return None
        row = memory.sessions[session_id]
        if row.owner != self._owner and self._is_held(row):
            raise HeldElsewhere(_HELD, self._memory.alive[row.owner])
        return self._take(row)

    async def create(self, commit: Commit) -> Lease | None:
        if not self._open().keys.keys().isdisjoint(commit.head.keys):
            return None
        return self.commit_now([commit])[0]

    async def take_due(self, now: datetime, most: int) -> Sequence[StoredSession]:
        due = [(at, row) for at, row in self._free_with_deadline() if at <= now]
        due.sort(key=lambda pair: pair[0])
        return [self._take(row) for _, row in due[:most]]

    async def next_due(self) -> datetime | None:
        return min((at for at, _ in self._free_with_deadline()), default=None)

    async def commit(self, commits: Sequence[Commit]) -> Sequence[Lease | None]:
        return self.commit_now(commits)

    def commit_now(self, commits: Sequence[Commit]) -> Sequence[Lease | None]:
        memory = self._open()
        leases = [self._advance(each) for each in commits]
        good = [each for each, lease in zip(commits, leases, strict=True) if lease is not None]
        for each in good:
            row = memory.sessions[each.head.session_id]
            self._drop_keys(row.head.keys - each.head.keys)
            row.head = replace(each.head, keys=row.head.keys & each.head.keys)
            for key in each.deletes:
                row.records.pop(key, None)
            row.records.update(each.puts)
        for session_id, keys in {each.head.session_id: each.head.keys for each in good}.items():
            self._gain_keys(memory.sessions[session_id], keys)
        return leases

    async def release(self, leases: Mapping[str, Lease]) -> None:
        for session_id, lease in leases.items():
            if (row := self._own(session_id, lease)) is not None:
                row.owner = None

    async def forget(self, session_id: str, lease: Lease) -> None:
        if self._own(session_id, lease) is not None:
            self._delete(session_id)

    async def forget_expired(self, now: datetime, most: int) -> int:
        memory = self._open()
        for login in [each for each in memory.logins.values() if each.until <= now]:
            del memory.logins[login.digest]
        memory.locks = {name: held for name, held in memory.locks.items() if held.until > now}
        free = sorted(self._free(), key=lambda row: row.head.expires_at)
        expired = sum(row.head.expires_at <= now for row in free)
        unwanted = free[: max(expired, len(memory.sessions) - most)]
        for row in unwanted:
            self._delete(row.head.session_id)
        return len(unwanted)

    async def put_chunks(self, session_id: str, name: str, first: int, chunks: Sequence[bytes]) -> bool:
        memory = self._open()
        if self._is_durable and session_id not in memory.sessions:
            return False
        memory.chunks.setdefault(session_id, {}).update(
            {(name, number): bytes(chunk) for number, chunk in enumerate(chunks, first)}
        )
        return True

    async def read_chunks(self, session_id: str, name: str, first: int, count: int) -> Sequence[bytes]:
        kept = self._open().chunks.get(session_id, {})
        names = ((name, number) for number in range(first, first + count))
        return [kept[each] for each in takewhile(kept.__contains__, names)]

    async def drop_chunks(self, session_id: str, name: str, count: int) -> None:
        kept = self._open().chunks.get(session_id, {})
        for number in range(count):
            kept.pop((name, number), None)
        if not kept:
            self._memory.chunks.pop(session_id, None)

    # State that all processes share.

    async def shared_revision(self) -> int:
        return self._open().revision

    async def servers_of(self, principal: str) -> Sequence[ServerConfiguration]:
        return [each for each in self._open().servers.values() if each.principal == principal]

    async def add_server(self, server: ServerConfiguration) -> None:
        if (server.principal, server.name) in self._open().servers:
            raise NameTaken(f'A server called "{server.name}" was added already.')
        self._put_server(server)

    async def replace_server(self, server: ServerConfiguration) -> None:
        if (server.principal, server.name) in self._open().servers:
            self._put_server(server)

    async def remove_server(self, principal: str, name: str) -> bool:
        if self._open().servers.pop((principal, name), None) is None:
            return False
        self._memory.changed(self)
        return True

    async def logins(self) -> Sequence[StoredLogin]:
        return list(self._open().logins.values())

    async def add_login(self, login: StoredLogin) -> None:
        self._open().logins[login.digest] = login
        self._memory.changed(self)

    async def end_login(self, digest: bytes) -> bool:
        if self._open().logins.pop(digest, None) is None:
            return False
        self._memory.changed(self)
        return True

    # Secrets.

    async def secrets_of(self, principal: str) -> Sequence[StoredSecret]:
        found = [secret for (owner, _), secret in self._open().secrets.items() if owner == principal]
        return sorted(found, key=lambda secret: secret.name)

    async def secret(self, principal: str, name: str) -> StoredSecret | None:
        return self._open().secrets.get((principal, name))

    async def put_secret(self, principal: str, name: str, data: bytes, *, revision: int) -> int | None:
        memory = self._open()
        found = memory.secrets.get((principal, name))
        if revision != (found.revision if found is not None else 0):
            return None
        new = next(iter(memory.secret_revisions))
        memory.secrets[principal, name] = StoredSecret(name, data, new)
        return new

    async def drop_secret(self, principal: str, name: str, *, revision: int) -> bool:
        found = self._open().secrets.get((principal, name))
        if found is None or found.revision != revision:
            return False
        del self._memory.secrets[principal, name]
        return True

    async def lock(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        memory = self._open()
        held = memory.locks.get(name)
        if held is not None and held.holder != holder and now < held.until and held.owner in memory.alive:
            return False
        memory.locks[name] = _Lock(holder, until, self._owner)
        return True

    async def unlock(self, name: str, holder: str) -> None:
        if name in (locks := self._open().locks) and locks[name].holder == holder:
            del locks[name]

    async def announce_change(self) -> None:
        self._open()
        self._memory.changed(self)

    # Lifecycle.

    async def close(self) -> None:
        self.die()

    def _open(self) -> _Memory:
        if self._owner not in self._memory.alive:
            raise StoreUnavailable("The store in memory is closed.")
        return self._memory

    def _is_held(self, row: _Row) -> bool:
        return row.owner in self._memory.alive

    def _free(self) -> Iterable[_Row]:
        return [row for row in self._open().sessions.values() if not self._is_held(row)]

    def _free_with_deadline(self) -> Iterable[tuple[datetime, _Row]]:
        return [(row.head.due_at, row) for row in self._free() if row.head.due_at is not None]

    def _own(self, session_id: str, lease: Lease) -> _Row | None:
        row = self._open().sessions.get(session_id)
        return row if row is not None and (row.owner, row.fence) == (self._owner, lease.fence) else None

    def _take(self, row: _Row) -> StoredSession:
        row.owner = self._owner
        row.fence += 1
        return StoredSession(head=row.head, lease=Lease(row.fence, row.revision), records=dict(row.records))

    def _advance(self, commit: Commit) -> Lease | None:
        """Return the lease for the next change, or None if the lease of this commit is out of date."""
        sessions, session_id = self._memory.sessions, commit.head.session_id
        if commit.lease.revision == 0:
            if session_id in sessions:
                return None
            row = sessions[session_id] = _Row(replace(commit.head, keys=frozenset()), self._owner)
        else:
            found = self._own(session_id, commit.lease)
            if found is None or found.revision != commit.lease.revision:
                return None
            row = found
            row.revision += 1
        return Lease(row.fence, row.revision)

    def _gain_keys(self, row: _Row, keys: frozenset[SessionKey]) -> None:
        session_id = row.head.session_id
        gained = frozenset(key for key in keys if self._memory.keys.setdefault(key, session_id) == session_id)
        row.head = replace(row.head, keys=gained)

    def _drop_keys(self, keys: Iterable[SessionKey]) -> None:
        for key in keys:
            del self._memory.keys[key]

    def _delete(self, session_id: str) -> None:
        self._drop_keys(self._memory.sessions.pop(session_id).head.keys)
        self._memory.chunks.pop(session_id, None)

    def _put_server(self, server: ServerConfiguration) -> None:
        self._memory.servers[server.principal, server.name] = server
        self._memory.changed(self)
