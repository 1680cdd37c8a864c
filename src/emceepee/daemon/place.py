"""Where the daemon is found, and who may be at either end: the same user, and nobody else."""

import os
import socket
import stat
import struct
from collections.abc import Mapping
from pathlib import Path

from emceepee.paths import state_folder

SOCKET_NAME = "daemon.sock"
LOCK_NAME = "daemon.lock"  # locked by the daemon as long as it runs
STARTING_NAME = "starting.lock"  # by whoever starts one
LINK_NAME = "console-link"
LOG_NAME = "daemon.log"
LONGEST_PATH = 100  # bytes; what every system takes for a socket
_SOL_LOCAL, _LOCAL_PEERCRED = 0, 1  # of macOS and the BSDs


class UnsafePlace(Exception):
    """Someone else may be at the other end; the text says why."""


def runtime_folder(environment: Mapping[str, str]) -> Path:
    """Of the user, for sockets. Raises: RuntimeError if there is no home."""
    given = Path(environment.get("XDG_RUNTIME_DIR") or ".")
    return given / "emceepee" if given.is_absolute() else state_folder(environment) / "run"


def open_folder(folder: Path) -> Path:
    """Made if it is not there, and nobody else's. Raises: UnsafePlace, OSError."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = folder.lstat()
    if (problem := folder_problem(status.st_mode, status.st_uid, own=os.geteuid())) is not None:
        raise UnsafePlace(f"{folder} {problem}")
    if len(os.fsencode(folder / SOCKET_NAME)) > LONGEST_PATH:
        raise UnsafePlace(f"{folder} is too long a path for a socket; set XDG_RUNTIME_DIR to a shorter one")
    return folder


def folder_problem(mode: int, owner: int, *, own: int) -> str | None:
    """Why a socket there may be someone else's."""
    if not stat.S_ISDIR(mode):
        return "is not a directory"
    if owner != own:
        return f"belongs to another user (uid {owner})"
    if stat.S_IMODE(mode) & 0o077:
        return f"is open to other users (mode {stat.S_IMODE(mode):04o}); close it with chmod 700"
    return None


def check_peer(connection: socket.socket) -> None:
    """Raises: UnsafePlace unless whoever is at the other end is the same user."""
    if (problem := peer_problem(peer_uid(connection), own=os.geteuid())) is not None:
        raise UnsafePlace(problem)


def peer_problem(uid: int | None, *, own: int) -> str | None:
    if uid is None:
        return "this system does not say who is at the other end of a socket"
    return None if uid == own else f"a process of another user (uid {uid}) is at the other end of the socket"


def peer_uid(connection: socket.socket) -> int | None:
    """As the kernel saw it when it connected; None if it does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is not None:
        _, uid, _ = struct.unpack("=iii", connection.getsockopt(socket.SOL_SOCKET, option, 12))
        return int(uid)
    try:
        _, uid = struct.unpack_from("=II", connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERCRED, 76))
    except OSError:
        return None
    return int(uid)
