"""The encoding of a session as fields of a hash. Head fields have one letter, and record fields start with a number."""

import json
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import lru_cache

from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.redis.keys import digest
from emceepee.store.store import Lease, RecordKey, SessionHead, StoredSession
from emceepee.store.timestamps import microseconds, moment_at

KEYS_REMEMBERED = 1024
_DIGEST_LENGTH = 64


def record_field(key: RecordKey) -> bytes:
    """Return a unique field name for any kind and any id."""
    return f"{len(key.kind)}:{key.kind}{key.record_id}".encode()


def read_record_field(name: bytes) -> RecordKey:
    length, _, rest = name.decode().partition(":")
    return RecordKey(rest[: int(length)], rest[int(length) :])


@lru_cache(KEYS_REMEMBERED)
def write_keys(keys: frozenset[SessionKey]) -> bytes:
    """Return one line per key, which starts with the digest of the key. Equal sets give equal bytes."""
    lines = [digest(key) + json.dumps([key.principal, str(key.kind), key.value]) for key in keys]
    return "\n".join(sorted(lines)).encode()


def read_keys(data: bytes) -> frozenset[SessionKey]:
    rows = [json.loads(line[_DIGEST_LENGTH:]) for line in data.decode().split("\n") if line]
    return frozenset(SessionKey(principal, KeyKind(kind), value) for principal, kind, value in rows)


def write_moment(moment: datetime | None) -> bytes:
    return b"" if moment is None else b"%d" % microseconds(moment)


def read_moment(data: bytes) -> datetime:
    return moment_at(int(data))


def read_session(session_id: str, fields: Sequence[bytes]) -> StoredSession:
    """Decode a session. `fields` are the alternating names and values of its hash, read after the take."""
    named = dict(zip(fields[::2], fields[1::2], strict=True))
    return StoredSession(
        head=_read_head(session_id, named),
        lease=Lease(int(named[b"f"]), int(named[b"r"])),
        records={read_record_field(name): data for name, data in named.items() if name[:1].isdigit()},
    )


def _read_head(session_id: str, named: Mapping[bytes, bytes]) -> SessionHead:
    return SessionHead(
        session_id=session_id,
        principal=named[b"p"].decode(),
        keys=read_keys(named[b"k"]),
        expires_at=read_moment(named[b"x"]),
        due_at=read_moment(named[b"d"]) if named[b"d"] else None,
    )
