"""The state file is private, checked when it is opened, and never silently replaced by a new one."""

import base64
import os
import sqlite3
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from emceepee.clock import SystemClock
from emceepee.store.sqlite import schema
from emceepee.store.sqlite.owners import folder_of
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import ServerConfiguration, StoreUnusable
from support.store.store_engines import SqliteEngine
from support.store.stored_sessions import head, key, store_session, taken

SECRET = b'{"headers": {"authorization": "Bearer hunter2"}}'
KEY = base64.urlsafe_b64encode(bytes(range(32))).decode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "by us" / "state.db"


@asynccontextmanager
async def opened(path: Path, *, key: str | None = None) -> AsyncIterator[SqliteStore]:
    store = await SqliteStore.open(path, SystemClock(), key=key)
    try:
        yield store
    finally:
        await store.close()


async def why_unusable(path: Path, *, key: str | None = None) -> str:
    with pytest.raises(StoreUnusable) as refused:
        await SqliteStore.open(path, SystemClock(), key=key)
    return str(refused.value)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_the_state_directory_and_its_files_are_private_to_the_owner(path: Path) -> None:
    mask = os.umask(0)
    try:
        async with opened(path) as store:
            await store_session(store, head("s1"), e="1")
            await store.add_server(ServerConfiguration(principal="alice", name="github", settings=SECRET))
            files = [file for file in path.parent.rglob("*") if file.is_file()]
            assert {file.name for file in files} >= {"state.db", "state.db-wal", "state.db-shm", "state.db.key"}
            assert {file.name: mode(file) for file in files} == {file.name: 0o600 for file in files}
            assert (mode(path.parent), mode(folder_of(path))) == (0o700, 0o700)
    finally:
        os.umask(mask)


async def test_an_own_state_file_that_others_could_read_is_made_private(path: Path) -> None:
    async with opened(path):
        path.chmod(0o644)
    async with opened(path):
        assert mode(path) == 0o600


async def test_closing_the_store_leaves_only_the_state_file(path: Path) -> None:
    async with opened(path) as store:
        await store_session(store, head("s1"))
    assert {file.name for file in path.parent.iterdir()} == {"state.db", "state.db.owners"}
    assert [file.name for file in folder_of(path).iterdir()] == ["opening"]


async def test_the_next_process_deletes_the_lock_files_of_dead_ones(path: Path) -> None:
    engine = SqliteEngine(path)
    for _ in range(3):
        await engine.kill(await engine.open())
    async with opened(path):
        assert len(list(folder_of(path).iterdir())) == 2


async def test_a_state_file_of_a_newer_version_is_refused_and_left_unchanged(path: Path) -> None:
    async with opened(path) as store:
        await store_session(store, head("s1"))
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA user_version = {schema.VERSION + 1}")
    connection.close()
    before = path.read_bytes()
    said = await why_unusable(path)
    assert str(path) in said
    assert "written by a newer emceepee" in said
    assert "--state sqlite:PATH" in said
    assert path.read_bytes() == before
    assert [file.name for file in folder_of(path).iterdir()] == ["opening"]


async def test_a_state_file_of_an_older_version_is_migrated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path) as store:
        await store_session(store, head("s1"), e="1")
    later = (*schema.STEPS, ["ALTER TABLE sessions ADD COLUMN extra TEXT", "INSERT INTO meta VALUES ('extra', 1)"])
    monkeypatch.setattr(schema, "STEPS", later)
    monkeypatch.setattr(schema, "VERSION", len(later))
    async with opened(path) as store:
        assert (await taken(store, key("s1"))).head.session_id == "s1"
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone() == (len(later),)
    connection.close()


async def test_a_failed_migration_leaves_the_old_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with opened(path) as store:
        await store_session(store, head("s1"), e="1")
    monkeypatch.setattr(schema, "STEPS", (*schema.STEPS, ["CREATE TABLE more (a)", "CREATE NONSENSE"]))
    monkeypatch.setattr(schema, "VERSION", schema.VERSION + 1)
    assert "NONSENSE" in await why_unusable(path)
    monkeypatch.undo()
    async with opened(path) as store:
        assert (await taken(store, key("s1"))).head.session_id == "s1"


async def test_a_database_of_another_program_is_refused_and_left_unchanged(path: Path) -> None:
    path.parent.mkdir(parents=True)
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE bookmarks (url)")
    connection.close()
    before = path.read_bytes()
    assert "another program" in await why_unusable(path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "text", [b"just words\n" * 500, b"SQLite format 3\0" + b"\xff" * 5000], ids=["text", "damaged"]
)
async def test_a_file_other_than_a_database_is_refused_and_left_unchanged(path: Path, text: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(text)
    said = await why_unusable(path)
    assert str(path) in said
    assert "move the file away and start with a new one" in said
    assert path.read_bytes() == text


async def test_damage_inside_a_state_file_is_found_after_an_unclean_exit(path: Path) -> None:
    engine = SqliteEngine(path)
    store = await engine.open()
    for number in range(50):
        await store_session(store, head(f"s{number}"), e="x" * 1000)
    await engine.kill(store)
    data = bytearray(path.read_bytes())
    data[4096 * 3 :] = os.urandom(len(data) - 4096 * 3)
    path.write_bytes(data)
    for _ in range(2):
        said = await why_unusable(path)
        assert "damaged" in said
        assert str(path) in said
    assert path.read_bytes() == data


async def test_an_empty_file_is_accepted_as_a_new_state_file(path: Path) -> None:
    path.parent.mkdir(parents=True)
    path.touch()
    async with opened(path) as store:
        await store_session(store, head("s1"))


async def test_a_directory_in_place_of_the_state_file_is_refused(path: Path) -> None:
    path.mkdir(parents=True)
    assert str(path) in await why_unusable(path)


async def test_a_refused_open_leaves_no_lock_file_behind(path: Path) -> None:
    async with opened(path, key=KEY) as store:
        await store.add_server(ServerConfiguration(principal="alice", name="github", settings=SECRET))
    await why_unusable(path)
    assert [file.name for file in folder_of(path).iterdir()] == ["opening"]


async def test_commits_are_counted_and_timed(path: Path) -> None:
    async with opened(path) as store:
        await store_session(store, head("s1"), e="1")
        await store_session(store, head("s2"), e="1")
        figures = store.commit_statistics
    assert (figures.count, len(figures.seconds)) == (2, 2)
    assert all(seconds > 0 for seconds in figures.seconds)


# Secrets.


async def test_no_state_file_contains_a_secret_in_plain_text(path: Path) -> None:
    async with opened(path) as store:
        await store.add_server(ServerConfiguration(principal="alice", name="github", settings=SECRET))
        files = [file for file in path.parent.rglob("*") if file.is_file()]
        assert not [file for file in files if b"hunter2" in file.read_bytes()]
    assert b"hunter2" not in path.read_bytes()
    async with opened(path) as store:
        (server,) = await store.servers_of("alice")
        assert server.settings == SECRET
        assert "hunter2" not in repr(server)


async def test_a_key_file_is_created_with_the_first_secret(path: Path) -> None:
    key_file = path.with_name("state.db.key")
    async with opened(path) as store:
        await store_session(store, head("s1"))
        assert not key_file.exists()
        await store.add_server(ServerConfiguration(principal="alice", name="github", settings=SECRET))
        assert key_file.exists()


async def test_secrets_under_a_configured_key_need_that_key(path: Path) -> None:
    async with opened(path, key=KEY) as store:
        await store.add_server(ServerConfiguration(principal="alice", name="github", settings=SECRET))
    assert not path.with_name("state.db.key").exists()
    other = base64.urlsafe_b64encode(bytes(32)).decode()
    assert "another key than that in the variable EMCEEPEE_STATE_KEY" in await why_unusable(path, key=other)
    assert "is missing" in await why_unusable(path)
    async with opened(path, key=KEY) as store:
        assert [each.settings for each in await store.servers_of("alice")] == [SECRET]


async def test_an_invalid_key_is_refused_even_without_stored_secrets(path: Path) -> None:
    assert "URL-safe" in await why_unusable(path, key="password")


async def test_two_processes_that_add_the_first_secrets_use_one_key(path: Path) -> None:
    async with opened(path) as store, opened(path) as other:
        await store.add_server(ServerConfiguration(principal="alice", name="one", settings=b"1"))
        await other.add_server(ServerConfiguration(principal="alice", name="two", settings=b"2"))
        assert [each.settings for each in await store.servers_of("alice")] == [b"1", b"2"]


async def test_a_process_with_another_key_than_the_first_gets_an_error(path: Path) -> None:
    async with opened(path) as store, opened(path, key=KEY) as other:
        await store.add_server(ServerConfiguration(principal="alice", name="one", settings=b"1"))
        with pytest.raises(StoreUnusable, match="another key"):
            await other.servers_of("alice")
        with pytest.raises(StoreUnusable, match="another key"):
            await other.add_server(ServerConfiguration(principal="alice", name="two", settings=b"2"))
        assert [each.name for each in await store.servers_of("alice")] == ["one"]


async def test_a_state_directory_that_cannot_be_created_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(
        StoreUnusable, match=r"because its directory cannot be \(.*\). Create the directory, or specify"
    ):
        await SqliteStore.open(tmp_path / "file" / "inner" / "state.db", SystemClock())
