"""The daemon's folder and socket, and the check that the same user is at both ends."""

import os
import socket
import stat
import struct
from collections.abc import Mapping
from pathlib import Path

from emceepee.paths import state_folder

SOCKET_NAME = "daemon.sock"
LOCK_NAME = "daemon.lock"  # locked while the daemon runs
STARTING_NAME = "starting.lock"  # locked by the process that starts a daemon
LINK_NAME = "console-link"
LOG_NAME = "daemon.log"
LONGEST_PATH = 100  # bytes; every system accepts this for a socket
_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1  # of macOS and the BSDs


class UnsafePlace(Exception):
    """Another user may control the other end; the text gives the reason."""


def runtime_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's folder for sockets. Raises: RuntimeError if there is no home."""
    given = Path(environment.get("XDG_RUNTIME_DIR") or ".")
    return given / "emceepee" if given.is_absolute() else state_folder(environment) / "run"


def open_folder(folder: Path) -> Path:
    """Create the folder if it is missing, and check that it is private. Raises: UnsafePlace, OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if (problem := folder_problem(status.st_mode, status.st_uid, own=os.geteuid())) is not None:
        raise UnsafePlace(f"{folder} {problem}")
    if len(os.fsencode(folder / SOCKET_NAME)) > LONGEST_PATH:
        raise UnsafePlace(f"the path {folder} is too long for a socket; set XDG_RUNTIME_DIR to a shorter one")
    return folder


def folder_problem(mode: int, owner: int, *, own: int) -> str | None:
    """Return why a socket there may belong to another user, or None."""
    if not stat.S_ISDIR(mode):
        return "is not a directory"
    if owner != own:
        return f"belongs to another user (uid {owner})"
    if stat.S_IMODE(mode) & 0o077:
        return f"is open to other users (mode {stat.S_IMODE(mode):04o}); close it with chmod 700"
    return None


def check_peer(connection: socket.socket) -> None:
    """Raises: UnsafePlace unless the peer process belongs to the same user."""
    if (problem := peer_problem(peer_uid(connection), own=os.geteuid())) is not None:
        raise UnsafePlace(problem)


def peer_problem(uid: int | None, *, own: int) -> str | None:
    if uid is None:
        return "this system does not report the peer of a socket"
    return None if uid == own else f"a process of another user (uid {uid}) is the peer of the socket"


def peer_uid(connection: socket.socket) -> int | None:
    """Return the peer's user id at the time it connected, or None if the kernel does not report it."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is not None:
        _, uid, _ = struct.unpack("=iii", connection.getsockopt(socket.SOL_SOCKET, option, 12))
        return int(uid)
    try:
        _, uid = struct.unpack_from("=II", connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76))
    except OSError:
        return None
    return int(uid)
