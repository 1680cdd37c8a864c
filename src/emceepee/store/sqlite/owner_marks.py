"""The content of a replica's file among the owners, and removal of the socket of a dead replica."""

import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from emceepee.state.replica import Replica

SOCKET_FOLDER_PREFIX = "emceepee-replica-"  # of the private directory that a replica creates for its socket
_UNIX = "unix:"
_MOST_BYTES = 8192


def write_mark(descriptor: int, replica: Replica) -> None:
    """Write the mark in one call, so that a concurrent reader sees all of it or nothing."""
    fields = {"slot": replica.slot, "epoch": replica.epoch, "address": replica.address}
    os.write(descriptor, json.dumps(fields).encode())


def read_mark(file: Path) -> Replica | None:
    """Return the replica, or None for an older emceepee, a process that only inspects the file, and a missing file."""
    try:
        fields = json.loads(_first_bytes(file))
        return Replica(slot=int(fields["slot"]), epoch=int(fields["epoch"]), address=str(fields["address"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_socket(replica: Replica | None) -> None:
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

    Raises: OSError if it is not there at all.
    """
    found = path.lstat()
    return is_kind(found.st_mode) and found.st_uid == os.geteuid()
