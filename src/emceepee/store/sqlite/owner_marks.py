"""What a process says of itself in its file among the owners, and the socket that a dead one has left."""

import json
import os
import stat
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from emceepee.state.replica import Replica

SOCKET_FOLDER_PREFIX = "emceepee-replica-"  # of the private directory that a replica makes for its socket
_UNIX = "unix:"
_MOST_BYTES = 8192


def write_mark(descriptor: int, replica: Replica) -> None:
    """In one write: whoever reads meanwhile sees all of it, or nothing."""
    fields = {"slot": replica.slot, "epoch": replica.epoch, "address": replica.address}
    os.write(descriptor, json.dumps(fields).encode())


def read_mark(file: Path) -> Replica | None:
    """None if it says nothing: an older emceepee, one that only looks at the state file, or one that is gone."""
    try:
        fields = json.loads(_first_bytes(file))
        return Replica(slot=int(fields["slot"]), epoch=int(fields["epoch"]), address=str(fields["address"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def remove_socket(replica: Replica | None) -> None:
    """With its directory, if both are ours and the directory was made for that."""
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
    """Not through a link, which someone else may have put there. Raises: OSError if it is not there at all."""
    found = path.lstat()
    return is_kind(found.st_mode) and found.st_uid == os.geteuid()
