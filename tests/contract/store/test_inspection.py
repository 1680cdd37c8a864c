"""The inspection and maintenance of a state file, with and without a running emceepee."""

import hashlib
import io
import json
import sqlite3
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from emceepee.clock import SystemClock
from emceepee.store.sqlite.inspection import Forgotten, StateFile
from emceepee.store.sqlite.owners import folder_of
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import LOGIN_CODE_MARK, Commit, RecordKey, ServerConfiguration, StoredLogin, StoreUnusable
from support.fakes.clock import START, FakeClock
from support.store.stored_sessions import HOUR, NOT_STORED, NOW, head, key, records, store_session, taken

MASKED = f"sha256:{hashlib.sha256(b's1').hexdigest()[:12]}"
SECRET = b'{"env": {"TOKEN": "hunter2"}}'


@pytest.fixture
def store(sqlite_store: SqliteStore) -> SqliteStore:
    return sqlite_store


def opened(path: Path) -> Any:
    return StateFile.open(path, SystemClock())


async def store_free(store: SqliteStore, name: str, **puts: str) -> None:
    await store.release({name: await store_session(store, head(name), **puts)})


async def test_state_statistics_show_size_sessions_records_and_age(
    path: Path, store: SqliteStore, clock: FakeClock
) -> None:
    await store_free(store, "s1", e1="1", e2="2")
    await clock.advance(60)
    await store.commit([Commit(head=head("s2"), lease=NOT_STORED, puts={RecordKey("task", "1"): b"{}"})])
    await store.add_server(ServerConfiguration(principal="alice", name="github", settings=SECRET))
    await store.add_login(StoredLogin(b"1", "alice", NOW))
    await store.add_login(StoredLogin(LOGIN_CODE_MARK + b"1", "alice", NOW))
    with opened(path) as file:
        seen = file.statistics()
    assert (seen.path, seen.sessions, seen.held_sessions, seen.servers, seen.logins) == (path, 2, 1, 1, 1)
    assert seen.records == {"event": 2, "task": 1}
    assert (seen.oldest, seen.newest) == (START, START + timedelta(seconds=60))
    assert seen.size_bytes > path.stat().st_size


async def test_an_empty_state_file_has_no_age(path: Path, store: SqliteStore) -> None:
    with opened(path) as file:
        seen = file.statistics()
    assert (seen.sessions, seen.records, seen.oldest, seen.newest) == (0, {}, None, None)


def test_an_inspection_does_not_create_a_missing_state_file(path: Path) -> None:
    with pytest.raises(StoreUnusable, match="does not exist"), opened(path):
        pass
    assert list(path.parent.iterdir()) == []


def test_an_inspection_refuses_a_foreign_file_with_the_usual_error(path: Path) -> None:
    path.write_text("words" * 1000)
    with pytest.raises(StoreUnusable, match="damaged, or is not a state file"), opened(path):
        pass


async def test_an_inspection_leaves_no_trace_in_the_state_file(path: Path, store: SqliteStore) -> None:
    before = sorted(file.name for file in folder_of(path).iterdir())
    with opened(path) as file:
        file.statistics()
    assert sorted(file.name for file in folder_of(path).iterdir()) == before


async def test_a_sound_state_file_has_no_problems_even_during_use(path: Path, store: SqliteStore) -> None:
    await store_session(store, head("s1"), e="1")
    await store.add_server(ServerConfiguration(principal="alice", name="github", settings=SECRET))
    with opened(path) as file:
        assert file.check() == []


async def test_orphaned_rows_in_the_state_file_are_reported_as_a_problem(path: Path, store: SqliteStore) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("INSERT INTO records VALUES ('lost', 'event', '1', x'00')")
    connection.execute("INSERT INTO keys VALUES ('alice', 'id', 'x', 'gone')")
    connection.execute("INSERT INTO servers (principal, name, is_disabled, settings) VALUES ('alice', 'x', 0, x'')")
    connection.close()
    with opened(path) as file:
        problems = file.check()
    assert [word for word in ("lost", "gone", "server x") if word in "\n".join(problems)] == [
        "lost",
        "gone",
        "server x",
    ]
    assert len(problems) == 3


async def test_damage_to_the_state_file_is_a_reported_problem_and_not_a_crash(path: Path, store: SqliteStore) -> None:
    for number in range(50):
        await store_free(store, f"s{number}", e="x" * 2000)
    await store.close()
    data = bytearray(path.read_bytes())
    data[-40960:] = b"\xff" * 40960
    path.write_bytes(data)
    with opened(path) as file:
        assert file.check() != []


async def test_compacting_the_state_file_frees_space(path: Path, store: SqliteStore) -> None:
    for number in range(50):
        await store_free(store, f"s{number}", e="x" * 10_000)
    await store_session(store, head("held"), e="1")
    await store.forget_expired(NOW, 1)
    with opened(path) as file:
        before, after = file.compact()
        assert (after < before / 5, file.statistics().sessions) == (True, 1)
    assert (await taken(store, key("held"))).records == records(e="1")


async def test_only_sessions_without_a_holder_can_be_deleted(path: Path, store: SqliteStore) -> None:
    await store_free(store, "free", e="1")
    await store_session(store, head("held"), e="1")
    with opened(path) as file:
        assert file.forget(["free", "held", "none"]) == Forgotten(["free"], ["held"], ["none"])
        assert file.check() == []
    assert await store.take(key("free")) is None
    assert (await taken(store, key("held"))).records != {}


async def test_sessions_without_recent_changes_can_be_deleted(path: Path, store: SqliteStore, clock: FakeClock) -> None:
    await store_free(store, "old")
    await store_session(store, head("old and held"))
    await clock.advance(3600)
    await store_free(store, "new")
    with opened(path) as file:
        assert file.forget_older_than(START + HOUR) == Forgotten(["old"], ["old and held"], [])
    assert await store.take(key("new")) is not None


async def test_a_state_export_contains_everything_except_secrets(path: Path, store: SqliteStore) -> None:
    puts = {
        RecordKey("event", "1"): b'{"a": [1]}',
        RecordKey("event", "2"): "käse".encode(),
        RecordKey("event", "3"): b"\xff\x00",
        RecordKey("message", "s1-4"): b"{}",
        RecordKey("session", ""): b'{"secret": "hunter2", "label": "cli"}',
    }
    await store.commit([Commit(head=head("s1", due_at=NOW), lease=NOT_STORED, puts=puts)])
    await store_session(store, head("s2"))
    await store.add_server(ServerConfiguration(principal="alice", name="github", settings=SECRET, is_disabled=True))
    await store.add_login(StoredLogin(b"digest", "alice", NOW))
    await store.add_login(StoredLogin(LOGIN_CODE_MARK + b"digest", "alice", NOW))
    written = io.StringIO()
    with opened(path) as file:
        file.export(written)
    document = json.loads(written.getvalue())
    first, second = document["sessions"]
    assert (first["id"], first["principal"], first["revision"]) == ("s1", "alice", 1)
    assert (first["due_at"], second["due_at"]) == (NOW.isoformat(), None)
    assert first["keys"] == [{"principal": "alice", "kind": "id", "value": MASKED}]
    assert first["records"] == [
        {"kind": "event", "id": "1", "json": {"a": [1]}},
        {"kind": "event", "id": "2", "text": "käse"},
        {"kind": "event", "id": "3", "base64": "/wA="},
        {"kind": "message", "id": f"{MASKED}-4", "json": {}},
        {"kind": "session", "id": "", "json": {"label": "cli"}},
    ]
    assert document["servers"] == [{"principal": "alice", "name": "github", "disabled": True}]
    assert document["logins"] == [{"principal": "alice", "until": NOW.isoformat()}]
    assert "hunter2" not in written.getvalue()
    assert "digest" not in written.getvalue()


async def test_an_export_of_empty_state_is_a_valid_document(path: Path, store: SqliteStore) -> None:
    written = io.StringIO()
    with opened(path) as file:
        file.export(written)
    assert json.loads(written.getvalue()) == {"format": 4, "sessions": [], "servers": [], "logins": []}


async def test_an_aborted_export_reports_no_error_about_the_state_file(path: Path) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    await (await SqliteStore.open(path, SystemClock())).close()
    with StateFile.open(path, SystemClock()) as file, pytest.raises(BrokenPipeError):
        file.export(Gone())
