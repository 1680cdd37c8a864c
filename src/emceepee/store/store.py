"""The interface of the store for sessions, the registry, and the console. Every engine gives the same guarantees.

A stored session consists of records, `(kind, id)` to bytes, and a head with the fields to find it. Only the process
that holds the lease of a session may change it:

    take ──▶ records, lease ──▶ commit ──▶ commit ──▶ release     the next take returns a new lease
               │                  └ atomic: after a crash, the store has all of the commit or none of it
               └ a dead process holds no sessions

A lease has a `fence`, a number that grows with every take, and the `revision` that the next change is based on. A
commit with an old fence or an old revision changes nothing.

Processes that use one store are *replicas* of each other. Each has a slot and publishes the address where the others
reach it. An engine that cannot see whether a replica is alive uses leases that expire. A process that failed to renew
its lease in time is not `is_sure` of its sessions, and calls `confirm` before it serves them. If the store does not
answer, the process continues to serve its sessions, unless it `is_in_doubt`.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from emceepee.state.replica import Replica
from emceepee.state.session_key import SessionKey


class RecordKey(NamedTuple):
    """The kind of a record, and its id within that kind."""

    kind: str
    record_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """The fields of a stored session that can be read without its records."""

    session_id: str
    principal: str
    keys: frozenset[SessionKey]
    expires_at: datetime
    """When the session expires: the store may delete it after that."""
    due_at: datetime | None = None
    """When a timer of the session is due, even if no client calls."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to change a session, and the revision that the next change is based on (0: not stored yet)."""

    fence: int
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session as `take` returned it from the store."""

    head: SessionHead
    lease: Lease
    records: Mapping[RecordKey, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One atomic change of one session. If a record is in both `puts` and `deletes`, the put wins."""

    head: SessionHead
    lease: Lease
    puts: Mapping[RecordKey, bytes] = field(default_factory=dict)
    deletes: frozenset[RecordKey] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfiguration:
    """A server that a principal added. `settings` may contain secrets, so engines that write to a disk encrypt them."""

    principal: str
    name: str
    settings: bytes = field(repr=False)
    is_disabled: bool = False
    holds_secrets: bool = True
    """Whether an engine without a key must reject this server."""


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """A secret of a principal. Engines that store it outside memory encrypt it. Every change has its own revision."""

    name: str
    data: bytes = field(repr=False)
    revision: int


def secret_place(principal: str, name: str) -> Sequence[str]:
    """Return the place that a secret is sealed for. The sealed secret cannot be opened for any other place."""
    return ("secret", principal, name)


LOGIN_CODE_MARK = b"code:"  # prefix of the digest of a one-time code, which is stored as a login without a person


@dataclass(frozen=True, slots=True)
class StoredLogin:
    """A person's login at the console. The store has only a digest of its secret."""

    digest: bytes
    principal: str
    until: datetime


class Sealer(Protocol):
    """Encrypts data and binds it to a place. Data sealed for one place cannot be opened for another."""

    def seal(self, plain: bytes, *, place: Sequence[str]) -> bytes: ...

    def open(self, sealed: bytes, *, place: Sequence[str]) -> bytes:
        """Raises: ValueError."""
        ...


class StoreError(Exception):
    """The message names the state file, or Redis, and what to do next."""


class StoreUnusable(StoreError):
    """The store cannot be opened: it is corrupt, from a newer version, under another key, or without file locks."""


class StoreUnavailable(StoreError):
    """The store cannot be read or written now: the disk is full or read-only. No part of the change is stored."""


class HeldElsewhere(StoreError):
    """Another live process holds the lease of the session."""

    def __init__(self, message: str, holder: Replica | None = None) -> None:
        super().__init__(message)
        self.holder = holder


class NoKey(StoreError):
    """The change has a secret, and the store has no key to encrypt it. No part of the change is stored."""


class NameTaken(StoreError):
    """A server of that name was added already, perhaps by another process."""


class SecretPlace(Protocol):
    """Secrets of principals, such as tokens.

    Processes read a secret when they need it. They get no notification of a change unless `announce_change` is called.

    Every method may raise StoreUnavailable.
    """

    @property
    def is_durable(self) -> bool:
        """Whether secrets outlive the process."""
        ...

    async def secrets_of(self, principal: str) -> Sequence[StoredSecret]:
        """Return the secrets of the principal, sorted by name."""
        ...

    async def secret(self, principal: str, name: str) -> StoredSecret | None: ...

    async def put_secret(self, principal: str, name: str, data: bytes, *, revision: int) -> int | None:
        """Store the secret if its current revision is `revision`; 0 means that it must not exist yet.

        Return the new revision. If the current revision differs, change nothing and return None.

        Raises: NoKey.
        """
        ...

    async def drop_secret(self, principal: str, name: str, *, revision: int) -> bool:
        """Delete the secret if it has that revision. Return whether it was deleted."""
        ...

    async def lock(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        """Try to acquire the lock. Return whether the holder has it now.

        Other holders can acquire it after `until`, or once the process of its holder has died.
        """
        ...

    async def unlock(self, name: str, holder: str) -> None:
        """Release the lock if this holder has it."""
        ...

    async def announce_change(self) -> None:
        """Make every process reload the shared state, as after a change of a server."""
        ...


class StoreListener:
    """Receives the events that an engine detects by itself. A subclass overrides the methods that it needs."""

    def handle_shared_change(self) -> None:
        """Handle a change of the shared state by another process."""

    def handle_replicas_gone(self, epochs: Collection[int]) -> None:
        """Handle the report of another process that the replicas with these epochs are dead."""

    def handle_return(self) -> None:
        """Handle the end of a store outage."""


class StoreListeners(StoreListener):
    """Passes every report on to all listeners of a store."""

    def __init__(self) -> None:
        self._listeners: list[StoreListener] = []

    def add(self, listener: StoreListener) -> None:
        self._listeners.append(listener)

    def clear(self) -> None:
        self._listeners.clear()

    def handle_shared_change(self) -> None:
        for listener in self._listeners:
            listener.handle_shared_change()

    def handle_replicas_gone(self, epochs: Collection[int]) -> None:
        for listener in self._listeners:
            listener.handle_replicas_gone(epochs)

    def handle_return(self) -> None:
        for listener in self._listeners:
            listener.handle_return()


class Store(SecretPlace, Protocol):
    """Reads and writes take effect in the order of their calls.

    Every method may raise StoreUnavailable, including after `close`.
    """

    @property
    def is_durable(self) -> bool:
        """Whether state outlives the process. If not, sessions are never committed."""
        ...

    @property
    def is_quick(self) -> bool:
        """Whether `commit_now` can succeed, so that callers should try it first."""
        ...

    def listen(self, listener: StoreListener) -> None:
        """Report to the listener from now on, if the engine detects such events by itself."""
        ...

    # Replicas.

    @property
    def sees_others(self) -> bool:
        """Whether the engine always knows which processes use it. If not, a process that seems dead may be alive."""
        ...

    @property
    def replica(self) -> Replica | None:
        """Return this process as the other replicas see it, or None if the store is not shared."""
        ...

    @property
    def is_sure(self) -> bool:
        """Whether this process certainly still holds its sessions. If not, call `confirm`."""
        ...

    @property
    def is_in_doubt(self) -> bool:
        """Whether this process must not serve its sessions before `confirm`, even if the store does not answer.

        Another process may have taken them: this one was suspended for too long, or its lease is known to have expired.
        """
        ...

    async def confirm(self, leases: Mapping[str, Lease]) -> Collection[str]:
        """Become sure again (see `is_sure`). Return the ids of the given sessions that this process has lost."""
        ...

    async def replicas(self) -> Sequence[Replica]:
        """Return all live replicas, including this one."""
        ...

    async def announce_gone(self, epochs: Collection[int]) -> None:
        """Notify the other processes of dead replicas, if the engine can. Otherwise they find out later."""
        ...

    async def replica_secret(self) -> bytes:
        """Return the secret that replicas use to sign requests to each other. Only processes of this store know it."""
        ...

    async def sealer(self) -> Sealer | None:
        """Return the sealer for secrets in session records. None: there is no key, so secrets must not be stored."""
        ...

    # Sessions.

    async def take(self, key: SessionKey) -> StoredSession | None:
        """Return the session with that key and a new lease, or None if there is none. Raises: HeldElsewhere.

        The process that holds a session may take it again. Its previous lease is then out of date.
        """
        ...

    async def create(self, commit: Commit) -> Lease | None:
        """Create a session. If one of its keys belongs to another session, change nothing and return None."""
        ...

    async def take_due(self, now: datetime, most: int) -> Sequence[StoredSession]:
        """Take up to `most` sessions whose `due_at` has passed and return them with new leases, the earliest first.

        Sessions that a live process holds, including this one, are skipped.
        """
        ...

    async def next_due(self) -> datetime | None:
        """Return the earliest `due_at` of the sessions that no live process holds."""
        ...

    async def commit(self, commits: Sequence[Commit]) -> Sequence[Lease | None]:
        """Return the lease for the next change of each session, or None where the lease is out of date.

        Each commit is atomic by itself. A first commit (revision 0) creates the session. If a key already belongs to
        another session, that session keeps the key. A later commit gains the key once it is free.
        """
        ...

    def commit_now(self, commits: Sequence[Commit]) -> Sequence[Lease | None] | None:
        """Commit like `commit`, but without waiting. If that is impossible, change nothing and return None."""
        ...

    async def release(self, leases: Mapping[str, Lease]) -> None:
        """Release sessions, by their ids, if the fence is current. Any process may take them then."""
        ...

    async def forget(self, session_id: str, lease: Lease) -> None:
        """Delete the session with all its records, if the fence is current."""
        ...

    async def forget_expired(self, now: datetime, most: int) -> int:
        """Delete expired sessions and expired logins. Return the number of deleted sessions.

        If more than `most` sessions are stored, also delete the sessions that expire first. Sessions that a live
        process holds always stay.
        """
        ...

    # Large parts of a session that this process holds. They are stored in chunks, each under a name and a number.
    # `take` does not read chunks. They are deleted with their session.

    async def put_chunks(self, session_id: str, name: str, first: int, chunks: Sequence[bytes]) -> bool:
        """Store chunks, numbered from `first` on. If the session does not exist, store nothing and return False."""
        ...

    async def read_chunks(self, session_id: str, name: str, first: int, count: int) -> Sequence[bytes]:
        """Return up to `count` chunks from `first` on, up to the first missing one."""
        ...

    async def drop_chunks(self, session_id: str, name: str, count: int) -> None:
        """Delete the chunks of that name. `count` is their total number."""
        ...

    # State that all processes share.

    async def shared_revision(self) -> int:
        """Return a number that grows with every change of a server or a login by any process."""
        ...

    async def servers_of(self, principal: str) -> Sequence[ServerConfiguration]:
        """Return the servers of the principal in the order in which they were added."""
        ...

    async def add_server(self, server: ServerConfiguration) -> None:
        """Raises: NameTaken."""
        ...

    async def replace_server(self, server: ServerConfiguration) -> None:
        """Replace the server of that name in its position, if it exists."""
        ...

    async def remove_server(self, principal: str, name: str) -> bool:
        """Remove the server. Return False if it did not exist."""
        ...

    async def logins(self) -> Sequence[StoredLogin]: ...

    async def add_login(self, login: StoredLogin) -> None: ...

    async def end_login(self, digest: bytes) -> bool:
        """End the login. Return False if it did not exist. Of several concurrent calls, exactly one returns True."""
        ...

    # Lifecycle.

    async def close(self) -> None:
        """Finish all earlier calls, and release every lease of this process."""
        ...
