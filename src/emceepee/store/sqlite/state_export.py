"""Export of a state file as JSON, without secrets. It streams one session at a time, so memory use stays small."""

import base64
import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TextIO

from emceepee.state.session_key import KeyKind
from emceepee.store.sqlite.schema import VERSION
from emceepee.store.store import LOGIN_CODE_MARK
from emceepee.store.timestamps import moment_at
from emceepee.terminal_text import printable_json_text

LOGINS_OF_PEOPLE = f"logins WHERE substr(digest, 1, {len(LOGIN_CODE_MARK)}) <> x'{LOGIN_CODE_MARK.hex()}'"
_OPENING_KINDS = (KeyKind.ID, KeyKind.HANDLE, KeyKind.CONNECTION)
_ENCODER = json.JSONEncoder(ensure_ascii=False)


def write_export(connection: sqlite3.Connection, file: TextIO) -> None:
    """Write a consistent snapshot. Commits during the export are not in it."""
    connection.execute("BEGIN")
    try:
        file.write(f'{{"format": {VERSION},\n "sessions": [')
        _write_items(file, _sessions(connection))
        file.write('],\n "servers": [')
        _write_items(file, _servers(connection))
        file.write('],\n "logins": [')
        _write_items(file, _logins(connection))
        file.write("]}\n")
    finally:
        connection.execute("ROLLBACK")


def _write_items(file: TextIO, items: Iterable[object]) -> None:
    for number, item in enumerate(items):
        file.write(",\n  " if number else "\n  ")
        file.writelines(map(printable_json_text, _ENCODER.iterencode(item)))


def _sessions(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    heads = "SELECT session_id, principal, expires_at, due_at, changed_at, revision FROM sessions ORDER BY session_id"
    for session_id, principal, expires_at, due_at, changed_at, revision in connection.execute(heads):
        keys = "SELECT principal, kind, value FROM keys WHERE session_id = ? ORDER BY kind, value"
        records = "SELECT kind, record_id, data FROM records WHERE session_id = ? ORDER BY kind, record_id"
        found = connection.execute(keys, (session_id,)).fetchall()
        mask = _masking([value for _, kind, value in found if kind in _OPENING_KINDS])
        yield {
            "id": session_id,
            "principal": principal,
            "expires_at": _iso(expires_at),
            "due_at": None if due_at is None else _iso(due_at),
            "changed_at": _iso(changed_at),
            "revision": revision,
            "keys": [{"principal": owner, "kind": kind, "value": mask(value)} for owner, kind, value in found],
            "records": [
                {"kind": kind, "id": mask(record_id)} | _readable(data)
                for kind, record_id, data in connection.execute(records, (session_id,))
            ],
        }


def _masking(secret_values: Sequence[str]) -> Callable[[str], str]:
    """Return a function that replaces ids and handles by digests, because they give access to a session.

    Equal values get equal digests.
    """
    digests = {value: f"sha256:{hashlib.sha256(value.encode()).hexdigest()[:12]}" for value in secret_values if value}

    def mask(text: str) -> str:
        for value, digest in digests.items():
            text = text.replace(value, digest)
        return text

    return mask


def _servers(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    """Yield the servers without their settings, which are secret as a whole."""
    rows = connection.execute("SELECT principal, name, is_disabled FROM servers ORDER BY position")
    for principal, name, is_disabled in rows:
        yield {"principal": principal, "name": name, "disabled": bool(is_disabled)}


def _logins(connection: sqlite3.Connection) -> Iterator[dict[str, Any]]:
    for principal, until in connection.execute(f"SELECT principal, until FROM {LOGINS_OF_PEOPLE} ORDER BY until"):
        yield {"principal": principal, "until": _iso(until)}


def _readable(data: bytes) -> dict[str, Any]:
    """Return JSON data without its `secret`, other text as text, and binary data in base64."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return {"text": text}
    if isinstance(document, dict):
        document.pop("secret", None)
    return {"json": document}


def _iso(count: int) -> str:
    return moment_at(count).isoformat()
