"""The live processes of a state file. Each holds a file lock, which the system releases when the process ends.

`STATE.owners/` has one file per process, named after its owner id and locked with `flock`. A process locks the file
`opening` while it opens the state file. The file of a replica contains its slot and the address where others reach it.
"""

import errno
import fcntl
import json
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from emceepee.paths import PRIVATE_FILE, PRIVATE_FOLDER
from emceepee.state.replica import Replica
from emceepee.store.sqlite.sqlite_faults import slot_taken

_OPENING = "opening"
_EPOCH_BITS = 53  # fits into a JSON number in every language
SOCKET_FOLDER_PREFIX = "emceepee-replica-"  # of the private directory that a replica creates for its socket
_UNIX = "unix:"
_MOST_BYTES = 8192
_PATIENCE_SECONDS, _PAUSE_SECONDS = 10.0, 0.02  # wait for another process that opens the file, which takes milliseconds


def folder_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.owners")


class Owners:
    """The processes that use one state file, including this one. Callers must explain OSErrors to the user.

    Other replicas reach this one at `address`. With None, this process only inspects the file and is no replica.
    """

    def __init__(self, path: Path, *, address: str | None = None, slot: int | None = None) -> None:
        self._path, self._folder = path, folder_of(path)
        self._id = secrets.token_hex(8)
        self._descriptor: int | None = None
        self._address, self._wanted_slot = address, slot
        self._replica: Replica | None = None

    @property
    def own_id(self) -> str:
        return self._id

    @property
    def replica(self) -> Replica | None:
        """Return this process as a replica, or None before `join` and for a mere inspection."""
        return self._replica

    @contextmanager
    def opening(self) -> Iterator[None]:
        """Exclude other processes that open the state file. Raises: OSError."""
        with suppress(FileExistsError):
            self._folder.mkdir(mode=PRIVATE_FOLDER)
        descriptor = self._open(_OPENING)
        try:
            _lock_patiently(descriptor)
            yield
        finally:
            os.close(descriptor)

    def dead(self) -> list[str]:
        """Return processes that died without `leave` and were not removed yet. Call this only while `opening`."""
        return [name for name in self._others() if not self.is_alive(name)]

    def join(self) -> None:
        """Register this process and remove dead ones. Call this only while `opening`. Raises: StoreUnusable."""
        for name in self.dead():
            _remove_socket(_read_mark(self._folder / name))
            (self._folder / name).unlink(missing_ok=True)
        if self._descriptor is None or not (self._folder / self._id).exists():
            self.vanish()
            replica = self._find_place()
            self._descriptor = self._open(self._id)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if replica is not None:
                _write_mark(self._descriptor, replica)
            self._replica = replica

    def leave(self) -> None:
        if self._descriptor is not None:
            with suppress(OSError):
                (self._folder / self._id).unlink(missing_ok=True)
            self.vanish()

    def vanish(self) -> None:
        """Release the lock but leave the file, as the end of the process would."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def is_alive(self, owner: str) -> bool:
        """Return whether the owner is alive. The test lock is shared, because an exclusive one looks like an owner."""
        if owner == self._id:
            return True
        try:
            descriptor = os.open(self._folder / owner, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(descriptor)
        return False

    def alive(self) -> list[str]:
        """Return the owner ids of this process and all other live ones."""
        return [self._id, *(name for name in self._others() if self.is_alive(name))]

    def replica_of(self, owner: str) -> Replica | None:
        return self._replica if owner == self._id else _read_mark(self._folder / owner)

    def replicas(self) -> list[Replica]:
        """Return all live replicas, including this process if it is one."""
        found = (self.replica_of(name) for name in self.alive())
        return [replica for replica in found if replica is not None]

    def _find_place(self) -> Replica | None:
        """Choose the requested slot, the previous slot, or the lowest free slot. Raises: StoreUnusable."""
        if self._address is None:
            return None
        others = (_read_mark(self._folder / name) for name in self._others() if self.is_alive(name))
        taken = {other.slot for other in others if other is not None}
        if self._wanted_slot is not None and self._wanted_slot in taken:
            raise slot_taken(self._path, self._wanted_slot)
        before = () if self._replica is None else (self._replica.slot,)
        preferred = before if self._wanted_slot is None else (self._wanted_slot,)
        slot = next(slot for slot in (*preferred, *range(len(taken) + 1)) if slot not in taken)
        return Replica(slot=slot, epoch=secrets.randbits(_EPOCH_BITS), address=self._address)

    def _others(self) -> list[str]:
        try:
            return [name for name in os.listdir(self._folder) if name not in (_OPENING, self._id)]
        except FileNotFoundError:
            return []

    def _open(self, name: str) -> int:
        return os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)


def _lock_patiently(descriptor: int) -> None:
    for _ in range(int(_PATIENCE_SECONDS / _PAUSE_SECONDS)):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            threading.Event().wait(_PAUSE_SECONDS)
        else:
            return
    raise OSError(errno.EBUSY, "another emceepee process has been opening it for too long")


# The content of a replica's file, and the socket of a dead replica.


def _write_mark(descriptor: int, replica: Replica) -> None:
    """Write the mark in one call, so that a concurrent reader sees all of it or nothing."""
    fields = {"slot": replica.slot, "epoch": replica.epoch, "address": replica.address}
    os.write(descriptor, json.dumps(fields).encode())


def _read_mark(file: Path) -> Replica | None:
    """Return the replica, or None for an older emceepee, a process that only inspects the file, and a missing file."""
    try:
        fields = json.loads(_first_bytes(file))
        return Replica(slot=int(fields["slot"]), epoch=int(fields["epoch"]), address=str(fields["address"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _remove_socket(replica: Replica | None) -> None:
    """Remove the socket and its directory, if this user owns both and the directory was created for a socket."""
    if replica is None or not replica.address.startswith(_UNIX):
        return
    socket = Path(replica.address.removeprefix(_UNIX))
    folder = socket.parent
    with suppress(OSError, ValueError):
        if folder.name.startswith(SOCKET_FOLDER_PREFIX) and _is_own(folder, stat.S_ISDIR):
            with suppress(FileNotFoundError):
                if _is_own(socket, stat.S_ISSOCK):
                    socket.unlink()
            folder.rmdir()


def _first_bytes(file: Path) -> bytes:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(descriptor, _MOST_BYTES)
    finally:
        os.close(descriptor)


def _is_own(path: Path, is_kind: Callable[[int], bool]) -> bool:
    """Return whether this user owns the path. Do not follow symbolic links, which another user may have created.

    Raises: OSError if the path does not exist.
    """
    found = path.lstat()
    return is_kind(found.st_mode) and found.st_uid == os.geteuid()
