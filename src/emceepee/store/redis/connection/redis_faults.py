"""Error messages for Redis. Each names the problem and the next step, and none contains a password."""

import asyncio
import ssl

import hiredis

from emceepee.store.redis.connection.redis_address import RedisAddress
from emceepee.store.redis.connection.redis_connection import ConnectionLost
from emceepee.store.store import StoreUnavailable, StoreUnusable

OLDEST = (6, 2)
CLOSED = "The state in Redis was closed, because emceepee is stopping."
_ELSEWHERE = "or store state in a file with --state sqlite"
# The first word of an error reply from Redis, the problem, and the next step.
_SAID = {
    "WRONGPASS": ("rejects the user or the password", "Correct them in the URL"),
    "NOAUTH": ("requires a password", "Add it to the URL, as in redis://:PASSWORD@HOST"),
    "NOPERM": ("denies this user a required command", "Allow all commands on keys that begin with the prefix"),
    "WRONGTYPE": ("has other data under these keys", "Choose another ?prefix= in the URL"),
    "OOM": ("has no memory left", "Give it more memory"),
    "READONLY": ("is a read-only replica", "Specify the primary, or its sentinels with redis+sentinel://"),
    "MASTERDOWN": ("is a replica that has lost its primary", "Specify the primary, or its sentinels"),
    "LOADING": ("is loading its data", "Wait until it has finished"),
    "BUSY": ("is busy with a script of another program", "End that script"),
    "MISCONF": ("cannot write to its disk, so it rejects changes", "Free space on its disk"),
    "CLUSTERDOWN": ("is a cluster in which some nodes are down", "Start its nodes"),
    "MOVED": ("is part of a cluster", "Use redis+cluster:// in the URL"),
    "CROSSSLOT": ("is part of a cluster", "Use redis+cluster:// in the URL"),
}
_WITHOUT_PASSWORD = ("has no password, but the URL contains one", "Remove it from the URL")
_ODD_DATABASE = ("has no database with that number", "Choose another after the / in the URL")
_START = "Start it, or correct the URL"
RECONNECTING = ("READONLY", "MASTERDOWN", "LOADING")  # after a failover, a new connection may reach a writable primary


def unusable(address: RedisAddress, error: Exception) -> StoreUnusable:
    what, way_out = _described(error)
    return unusable_because(address, what, way_out)


def unusable_because(address: RedisAddress, what: str, way_out: str) -> StoreUnusable:
    return StoreUnusable(f"Redis at {address} {what}. {way_out}, {_ELSEWHERE}.")


def unusable_as(error: StoreUnavailable) -> StoreUnusable:
    """Convert an error that occurred after the first connection."""
    return StoreUnusable(f"{str(error).removesuffix('.')}, {_ELSEWHERE}.")


def unavailable(address: RedisAddress, error: Exception) -> StoreUnavailable:
    what, way_out = _described(error)
    return StoreUnavailable(f"Redis at {address} {what}. {way_out}.")


def first_word(error: Exception) -> str:
    return str(error).partition(" ")[0]


def check_version(address: RedisAddress, version: str) -> None:
    """Raises: StoreUnusable."""
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdecimal())
    if numbers < OLDEST:
        least = ".".join(map(str, OLDEST))
        raise unusable_because(address, f"is version {version}", f"Use {least} or newer, or Valkey")


def _described(error: Exception) -> tuple[str, str]:
    if isinstance(error, hiredis.ReplyError):
        return _said(str(error))
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"has a certificate that is not trusted ({error.verify_message})", "Specify its authority with ?ca=FILE"
    if isinstance(error, ssl.SSLError):
        return "does not use TLS correctly", "Use redis:// if it is configured without TLS"
    if isinstance(error, asyncio.TimeoutError):
        return "does not answer", _START
    if isinstance(error, ConnectionLost):
        return f"cannot be used: {error}", _START
    if isinstance(error, FileNotFoundError):
        return f"needs the file {error.filename}, which does not exist", "Correct the URL"
    reason = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"cannot be reached ({reason})", _START


def _said(text: str) -> tuple[str, str]:
    word = text.partition(" ")[0]
    if "without any password" in text or "no password is set" in text:
        return _WITHOUT_PASSWORD
    if "DB index" in text:
        return _ODD_DATABASE
    if "invalid username-password" in text or "invalid password" in text:
        return _SAID["WRONGPASS"]
    return _SAID.get(word) or (f"rejects a command ({text[:200]})", "See its log")
