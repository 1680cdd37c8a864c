"""The store as sessions, the registry and the console see it; every engine keeps the same promises.

A session at rest is a set of records, `(kind, id)` to bytes, and a head by which it is found. Only the process that
holds its lease may change it:

    take ──▶ records, lease ──▶ commit ──▶ commit ──▶ release     the next one to take it has another lease
               │                  └ atomic: all of it is there after a crash, or nothing
               └ a process that is dead holds nothing

What a lease is good for is in its `fence`, a number that grows with every taking, and in the `revision` that the change
is based on: a commit with an old one of either changes nothing.

Processes that use one store are *replicas* of each other. Each has a slot, and says where the others reach it. An
engine that cannot see whether they live goes by leases that lapse; a process that could not renew its own for a while
is not `is_sure` of what it holds, and asks (`confirm`) before it serves any of it. If it gets no answer, it goes on
with what it holds, unless it `is_in_doubt`.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple, Protocol

from emceepee.state.replica import Replica
from emceepee.state.session_key import SessionKey


class RecordKey(NamedTuple):
    """What a record is of, and which one it is."""

    kind: str
    record_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionHead:
    """What is known of a stored session without reading its records."""

    session_id: str
    principal: str
    keys: frozenset[SessionKey]
    expires_at: datetime
    """Nobody will ask for it any more."""
    due_at: datetime | None = None
    """Then time changes something in it, whether anybody asks or not."""


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to change a session, and the revision that the next change is based on. 0: it is not stored yet."""

    fence: int
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSession:
    """A session as it was taken from the store."""

    head: SessionHead
    lease: Lease
    records: Mapping[RecordKey, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One atomic change of one session. A record that is both put and deleted is put."""

    head: SessionHead
    lease: Lease
    puts: Mapping[RecordKey, bytes] = field(default_factory=dict)
    deletes: frozenset[RecordKey] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerConfiguration:
    """A server that a principal added. `settings` may hold secrets: engines that write to a disk encrypt them."""

    principal: str
    name: str
    settings: bytes = field(repr=False)
    is_disabled: bool = False
    holds_secrets: bool = True
    """Whether an engine without a key must refuse it."""


@dataclass(frozen=True, slots=True)
class StoredSecret:
    """Something secret of a principal. Engines that write it anywhere encrypt it. No two changes have one revision."""

    name: str
    data: bytes = field(repr=False)
    revision: int


def secret_place(principal: str, name: str) -> Sequence[str]:
    """What a secret is sealed for, so that it is opened nowhere else."""
    return ("secret", principal, name)


LOGIN_CODE_MARK = b"code:"  # begins the digest of a one-time code, which is kept as a login of nobody yet


@dataclass(frozen=True, slots=True)
class StoredLogin:
    """A person's login at the console; of its secret only a digest is known."""

    digest: bytes
    principal: str
    until: datetime


class Sealer(Protocol):
    """Encrypts. What was sealed for one place is not opened in another."""

    def seal(self, plain: bytes, *, place: Sequence[str]) -> bytes: ...

    def open(self, sealed: bytes, *, place: Sequence[str]) -> bytes:
        """Raises: ValueError."""
        ...


class StoreError(Exception):
    """The text names the file and says what to do."""


class StoreUnusable(StoreError):
    """It cannot be opened as it is: corrupt, of a newer version, under another key, without locks."""


class StoreUnavailable(StoreError):
    """Just now it cannot be written or read: the disk is full, or read-only. Nothing of the change is there."""


class HeldElsewhere(StoreError):
    """Another process that is alive holds the lease of the session."""

    def __init__(self, message: str, holder: Replica | None = None) -> None:
        super().__init__(message)
        self.holder = holder


class NoKey(StoreError):
    """It holds a secret, and there is no key to encrypt it under. Nothing of the change is there."""


class NameTaken(StoreError):
    """Another process has added a server of that name."""


class SecretPlace(Protocol):
    """Secrets of principals: tokens and the like. They are read when they are needed; nobody is told of a change unless
    it is announced.

    Every method may raise StoreUnavailable.
    """

    @property
    def is_durable(self) -> bool:
        """Whether it outlives the process."""
        ...

    async def secrets_of(self, principal: str) -> Sequence[StoredSecret]:
        """By their names."""
        ...

    async def secret(self, principal: str, name: str) -> StoredSecret | None: ...

    async def put_secret(self, principal: str, name: str, data: bytes, *, revision: int) -> int | None:
        """The revision that it has now; None, and nothing is changed, if another was there. 0: none must be there.

        Raises: NoKey.
        """
        ...

    async def drop_secret(self, principal: str, name: str, *, revision: int) -> bool:
        """False, and nothing is changed, if there was none of that revision."""
        ...

    async def lock(self, name: str, holder: str, *, now: datetime, until: datetime) -> bool:
        """Whether the holder has the lock now. It is anybody's after `until`, or once the holder's process is gone."""
        ...

    async def unlock(self, name: str, holder: str) -> None:
        """If that one has it."""
        ...

    async def announce_change(self) -> None:
        """Have every process look again at what all share, as after a change of a server."""
        ...


class Store(SecretPlace, Protocol):
    """Reads and writes take effect in the order in which they were asked.

    Every method may raise StoreUnavailable, also because it was closed.
    """

    @property
    def is_durable(self) -> bool:
        """Whether anything outlives the process; if not, sessions are not committed at all."""
        ...

    @property
    def is_quick(self) -> bool:
        """Whether `commit_now` is worth a try."""
        ...

    on_found_again: Callable[[], None] | None
    """Called when the store answers after it did not, where the engine hears of that by itself."""

    # Replicas.

    @property
    def sees_others(self) -> bool:
        """Whether it knows at any time which other processes use it. If not, one may be there that seems to be gone."""
        ...

    on_shared_change: Callable[[], None] | None
    """Called when another process has changed what all share, where the engine hears of that by itself."""

    @property
    def replica(self) -> Replica | None:
        """This process, as the others know it; None if nothing is shared."""
        ...

    @property
    def is_sure(self) -> bool:
        """Whether this process surely holds what it holds. If not, `confirm`."""
        ...

    @property
    def is_in_doubt(self) -> bool:
        """Whether it must not serve what it holds before it is confirmed, even if the store does not answer.

        Another may have taken it: the process stood still for too long, or its lease is known to have lapsed.
        """
        ...

    async def confirm(self, leases: Mapping[str, Lease]) -> Collection[str]:
        """Become sure again; those of the sessions, by their ids, that another has taken meanwhile."""
        ...

    async def replicas(self) -> Sequence[Replica]:
        """Those that are alive, this one among them."""
        ...

    on_replicas_gone: Callable[[Collection[int]], None] | None
    """Called with the epochs of those that another process has found gone, where the engine hears of that by itself."""

    async def announce_gone(self, epochs: Collection[int]) -> None:
        """Tell the other processes who is gone, where the engine can. They would find out later."""
        ...

    async def replica_secret(self) -> bytes:
        """Known to those who use the store, and to nobody else: they sign with it what they ask of each other."""
        ...

    async def sealer(self) -> Sealer | None:
        """For what is secret in the records of a session. None: there is no key, and it must not be stored."""
        ...

    # Sessions.

    async def take(self, key: SessionKey) -> StoredSession | None:
        """The session found by that key, with a new lease; None if there is none. Raises: HeldElsewhere.

        Whoever holds it already may take it anew: the lease from before is out of date then.
        """
        ...

    async def create(self, commit: Commit) -> Lease | None:
        """A new session; None, and nothing is changed, if one of its keys leads to another."""
        ...

    async def take_due(self, now: datetime, most: int) -> Sequence[StoredSession]:
        """Sessions whose `due_at` has come, with new leases, the longest due first; only what nobody alive holds.

        What this process itself holds is not among them.
        """
        ...

    async def next_due(self) -> datetime | None:
        """The earliest `due_at` of the sessions that nobody alive holds."""
        ...

    async def commit(self, commits: Sequence[Commit]) -> Sequence[Lease | None]:
        """The lease for the next change of each, or None for one whose lease is out of date. Each is atomic by itself.

        A first commit (revision 0) makes the session. A key that leads to another session by then is left to it, and
        gained by a later commit if it is free.
        """
        ...

    def commit_now(self, commits: Sequence[Commit]) -> Sequence[Lease | None] | None:
        """The same, if it takes no waiting; None if it would, and then nothing is changed."""
        ...

    async def release(self, leases: Mapping[str, Lease]) -> None:
        """Let go of sessions, by their ids, where the fence is good: any process may take them now."""
        ...

    async def forget(self, session_id: str, lease: Lease) -> None:
        """Delete it with all its records, if the fence is good."""
        ...

    async def forget_expired(self, now: datetime, most: int) -> int:
        """Delete what has expired and nobody alive holds, and beyond `most` sessions those that expire first.

        How many sessions that were. Logins that are over go, too.
        """
        ...

    # Large parts of a session that this process holds: kept in chunks, each under a name and a number. Whoever takes
    # the session does not read them; they are deleted with it.

    async def put_chunks(self, session_id: str, name: str, first: int, chunks: Sequence[bytes]) -> bool:
        """Numbered from `first` on. False, and nothing is kept, if the session is not there."""
        ...

    async def read_chunks(self, session_id: str, name: str, first: int, count: int) -> Sequence[bytes]:
        """As many of them as there are in a row."""
        ...

    async def drop_chunks(self, session_id: str, name: str, count: int) -> None:
        """The first `count` of them, which are all."""
        ...

    # What all processes share.

    async def shared_revision(self) -> int:
        """It grows with every change of a server or a login, whichever process makes it."""
        ...

    async def servers_of(self, principal: str) -> Sequence[ServerConfiguration]:
        """In the order in which they were added."""
        ...

    async def add_server(self, server: ServerConfiguration) -> None:
        """Raises: NameTaken."""
        ...

    async def replace_server(self, server: ServerConfiguration) -> None:
        """In its place, if it is there."""
        ...

    async def remove_server(self, principal: str, name: str) -> bool:
        """False if it was not there."""
        ...

    async def logins(self) -> Sequence[StoredLogin]: ...

    async def add_login(self, login: StoredLogin) -> None: ...

    async def end_login(self, digest: bytes) -> bool:
        """False if it was not there. Of several that end it at the same time, one is told that it was."""
        ...

    # Its own life.

    async def close(self) -> None:
        """What was asked for before is done; every lease of this process is released."""
        ...
