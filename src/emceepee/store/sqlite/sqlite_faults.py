"""Error messages for state files. Each names the problem and the next step."""

import errno
import sqlite3
from pathlib import Path

from emceepee.store.store import StoreUnavailable, StoreUnusable

NO_LOCKS = "is on a file system without file locks, where several processes would corrupt it"
_LOCKLESS = {errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS}
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FORBIDDEN = {errno.EACCES, errno.EPERM, errno.EROFS}

_ROOM = "Free space on its disk"
_WRITABLE = "Give this user write access to the file and its directory"
_ANEW = "Restore an earlier copy, or move the file away and start with a new one"
_LOCAL_DISK = "Put it on a local disk"
_ELSEWHERE = "specify another file with --state sqlite:PATH, or store nothing with --state memory"
_END_OTHER = "End the program that locks it"


def unusable(path: Path, error: Exception) -> StoreUnusable:
    what, way_out = _described(error)
    if not path.parent.exists() and getattr(error, "errno", None) not in _FORBIDDEN:
        what = f"cannot be created, because its directory cannot be ({getattr(error, 'strerror', None) or error})"
        way_out = "Create the directory"
    return unusable_because(path, what, way_out)


def unusable_because(path: Path, what: str, way_out: str) -> StoreUnusable:
    return StoreUnusable(f"The state file {path} {what}. {way_out}, or {_ELSEWHERE}.")


def unavailable(path: Path, error: Exception) -> StoreUnavailable:
    what, way_out = _described(error)
    return StoreUnavailable(f"The state file {path} {what}. {way_out}.")


def log_held(path: Path, size: int) -> StoreUnavailable:
    what = f"cannot be written: another program has a transaction open on it, and its log has {size >> 20} MiB"
    return StoreUnavailable(f"The state file {path} {what}. {_END_OTHER}.")


def held_elsewhere(path: Path) -> str:
    return f"Another emceepee process that uses {path} holds this session. Use that process, or stop it."


def slot_taken(path: Path, slot: int) -> StoreUnusable:
    what = f"is in use by another emceepee process with the slot {slot}"
    return unusable_because(path, what, "Omit --replica-slot, specify a free slot")


def primary_code(error: sqlite3.Error) -> int | None:
    """Return the primary result code of SQLite, without the extended part."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _described(error: Exception) -> tuple[str, str]:
    """Return the problem and the next step."""
    return _of_database(error) if isinstance(error, sqlite3.Error) else _of_system(error)


def _of_system(error: Exception) -> tuple[str, str]:
    number, words = getattr(error, "errno", None), getattr(error, "strerror", None) or str(error)
    if number in _LOCKLESS:
        return NO_LOCKS, _LOCAL_DISK
    if number in _NO_ROOM:
        return f"cannot be written, because the disk is full ({words})", _ROOM
    if number in _FORBIDDEN:
        return f"cannot be opened or written ({words})", _WRITABLE
    if number == errno.ENOENT:
        return "no longer exists", "Put it back"
    return f"cannot be used ({words})", "Check its disk"


def _of_database(error: sqlite3.Error) -> tuple[str, str]:
    code, words = primary_code(error), str(error)
    if code == sqlite3.SQLITE_FULL:
        return f"cannot be written, because the disk is full ({words})", _ROOM
    if code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_PERM, sqlite3.SQLITE_AUTH):
        return f"cannot be opened or written ({words})", _WRITABLE
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        return f"has been locked by another program for too long ({words})", _END_OTHER
    if code in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        return f"is damaged, or is not a state file ({words})", _ANEW
    if code == sqlite3.SQLITE_PROTOCOL or "LOCK" in getattr(error, "sqlite_errorname", ""):
        return f"{NO_LOCKS} ({words})", _LOCAL_DISK
    return f"cannot be used ({words})", "Check its disk"
