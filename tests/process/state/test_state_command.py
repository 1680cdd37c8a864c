"""`emceepee state` on the state of real processes: running, killed, and with a damaged file."""

import asyncio
import json
import os
import sqlite3
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

from emceepee.clock import SystemClock
from emceepee.store.location import KEY_VARIABLE
from emceepee.store.redis.connection.redis_address import parse_address
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.store import ServerConfiguration
from support.callers.emceepee_process import BOUND, emceepee
from support.callers.http_process import http_process
from support.server_programs.stdio_entries import stdio_server
from support.store.stored_sessions import change, head
from support.system.redis_server import redis_server

SECRET = "a-secret-of-the-server"


class StateCommand:
    """`emceepee state …` on one file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.flags = ("--state", f"sqlite:{path}")

    async def run(self, *words: str) -> tuple[int | None, str, str]:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "emceepee", "state", *words, *self.flags),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await asyncio.wait_for(process.communicate(), BOUND)
        return process.returncode, out.decode(), err.decode()

    async def facts(self, *words: str) -> Any:
        code, out, err = await self.run(*words, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    async def session_ids(self) -> list[str]:
        _, out, _ = await self.run("export", "-")
        return [session["id"] for session in json.loads(out)["sessions"]]


@pytest.fixture
def state(tmp_path: Path) -> StateCommand:
    return StateCommand(tmp_path / "own" / "state.db")


async def fill(state: StateCommand, *names: str) -> None:
    """A session per name, each with a timer, by a process that has ended."""
    for name in names:
        async with emceepee(*state.flags, "--session", name) as caller:
            await caller.initialize()
            await caller.value("set_timer", duration_ms=3_600_000, message=f"tea for {name}")
            assert await caller.end() == 0


async def test_the_state_command_shows_the_state_while_serve_runs_and_afterwards(state: StateCommand) -> None:
    async with http_process(*state.flags) as endpoint:
        caller = await endpoint.caller()
        await caller.value("add_server", name="kept", **stdio_server())
        await caller.value("set_timer", duration_ms=3_600_000, message="tea")
        seen = await state.facts()
        assert {key: seen[key] for key in ("path", "exists", "sessions", "heldSessions", "servers", "processes")} == {
            "path": str(state.path),
            "exists": True,
            "sessions": 1,
            "heldSessions": 1,
            "servers": 1,
            "processes": 1,
        }
        assert seen["sizeBytes"] > 4096
        assert 0 <= seen["secondsSinceChange"] < BOUND
        code, out, err = await state.run()
        assert (code, err) == (0, "")
        assert "Sessions:       1, 1 of them held by a running emceepee\n" in out
        assert "In use:         by 1 process\n" in out
        endpoint.process.terminate()
        await endpoint.process.wait()
        seen = await state.facts()
        assert (seen["sessions"], seen["heldSessions"], seen["processes"]) == (1, 0, 0)
        assert "In use:         no\n" in (await state.run())[1]


async def test_the_state_command_lists_the_users_of_a_redis_store_without_its_password(state: StateCommand) -> None:
    with redis_server(password=SECRET) as redis:
        address = parse_address(redis.url())
        store = await RedisStore.open(address, SystemClock(), address="http://127.0.0.1:1234", lease_seconds=60)
        await store.commit([change(head("s1", expires_at=SystemClock().now().replace(year=2100)))])
        await store.add_server(ServerConfiguration(principal="alice", name="ant", settings=b"{}", holds_secrets=False))
        state.flags = ("--state", redis.url(address.prefix))
        assert await state.facts() == {
            "path": None,
            "exists": True,
            "redis": str(address),
            "sessions": 1,
            "servers": 1,
            "plainServers": 1,
            "logins": 0,
            "replicas": [{"slot": 0, "address": "http://127.0.0.1:1234"}],
            "processes": 1,
        }
        code, out, err = await state.run()
        assert (code, err) == (0, "")
        assert "Replicas:       1\n  slot 0:       http://127.0.0.1:1234\n" in out
        await store.close()
        assert (await state.facts())["replicas"] == []
        state.flags = ("--state", redis.url().replace(SECRET, f"{SECRET}x"))
        code, out, err = await state.run()
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "rejects the user or the password" in err
    assert SECRET not in err


async def test_the_state_check_accepts_a_sound_file_and_rejects_a_damaged_one(state: StateCommand) -> None:
    await fill(state, "anna")
    assert await state.run("check") == (0, f"{state.path}: nothing is wrong.\n", "")
    with sqlite3.connect(state.path) as connection:
        connection.execute("DELETE FROM sessions")
    connection.close()
    code, out, err = await state.run("check")
    assert code == 1
    assert "the session does not" in out
    assert err == (
        f"emceepee: the state file {state.path} is damaged. "
        "Restore a backup, or move the file away to start with a new one.\n"
    )
    code, out, _ = await state.run("check", "--json")
    assert (code, len(json.loads(out)["problems"])) == (1, 2)


async def test_a_file_that_is_not_a_state_file_is_reported_in_one_line_and_left_unchanged(state: StateCommand) -> None:
    state.path.parent.mkdir()
    state.path.write_bytes(b"not a database" * 100)
    for words in ((), ("check",), ("compact",), ("forget", "x"), ("export", "-")):
        code, out, err = await state.run(*words)
        assert (code, out) == (2, "")
        assert err.startswith(f"emceepee: The state file {state.path} is damaged, or is not a state file")
        assert err.count("\n") == 1
    assert state.path.read_bytes() == b"not a database" * 100


async def test_sessions_are_deleted_by_id_and_by_age_and_the_others_stay(state: StateCommand) -> None:
    await fill(state, "anna", "ben")
    anna, ben = await state.session_ids()
    assert await state.run("forget", "--older-than", "1h") == (0, "Forgotten: 0\n", "")
    assert (await state.facts("forget", anna))["forgotten"] == [anna]
    assert await state.session_ids() == [ben]
    code, _, err = await state.run("forget", anna)
    assert (code, err) == (2, f"emceepee: there is no session {anna}; export shows all sessions\n")
    assert await state.run("forget", "--older-than", "0s") == (0, "Forgotten: 1\n", "")
    assert await state.session_ids() == []
    async with emceepee(*state.flags, "--session", "ben") as caller:
        await caller.initialize()
        assert (await caller.value("list_timers"))["timers"] == []


async def test_a_session_that_a_running_process_holds_is_not_deleted(state: StateCommand) -> None:
    async with emceepee(*state.flags, "--session", "anna") as caller:
        await caller.initialize()
        await caller.value("set_timer", duration_ms=3_600_000, message="tea")
        [anna] = await state.session_ids()
        code, out, err = await state.run("forget", anna)
        assert (code, out) == (2, "Forgotten: 0\n")
        assert err == "emceepee: a running emceepee holds 1 of them; stop it first\n"
        code, out, _ = await state.run("forget", "--older-than", "0s")
        assert (code, out) == (0, "Forgotten: 0\n")
        assert len((await caller.value("list_timers"))["timers"]) == 1
        caller.process.kill()
        await caller.process.wait()
        assert (await state.facts("forget", anna))["forgotten"] == [anna]


async def test_compacting_the_state_frees_disk_space_while_serve_runs(state: StateCommand) -> None:
    async with http_process(*state.flags) as endpoint:
        caller = await endpoint.caller()
        for _ in range(50):
            timer = await caller.value("set_timer", duration_ms=3_600_000, message="x" * 500)
            await caller.value("delete_timer", timer_id=timer["timerId"])
        seen = await state.facts("compact")
        assert seen["bytesAfter"] <= seen["bytesBefore"]
        await caller.value("set_timer", duration_ms=3_600_000, message="goes on")
    code, out, err = await state.run("compact")
    assert (code, err) == (0, "")
    assert out.startswith(f"{state.path}: ")


async def test_a_state_export_is_private_and_contains_no_secret(state: StateCommand, tmp_path: Path) -> None:
    async with http_process(*state.flags) as endpoint:
        caller = await endpoint.caller()
        await caller.value("add_server", name="kept", **stdio_server(), env={"TOKEN": SECRET})
        handle = (await caller.value("open_session"))["session"]
        await caller.value("set_timer", duration_ms=3_600_000, message="tea")
        target = tmp_path / "export.json"
        assert await state.run("export", str(target)) == (0, f"Written to {target}\n", "")
        text = target.read_text()
        assert stat.S_IMODE(os.stat(target).st_mode) == 0o600
        document = json.loads(text)
        assert [server["name"] for server in document["servers"]] == ["kept"]
        assert "tea" in text
        key = (state.path.parent / "state.db.key").read_text().strip()
        for secret in (SECRET, key, handle, caller.headers["mcp-session-id"]):
            assert secret not in text
        assert '"secret"' not in text
        for flags in ((), ("--json",)):
            assert json.loads((await state.run("export", "-", *flags))[1])["format"] == document["format"]


async def test_a_state_export_does_not_overwrite_the_state(state: StateCommand) -> None:
    await fill(state, "anna")
    for name in ("state.db", "state.db-wal", "state.db.key"):
        code, _, err = await state.run("export", str(state.path.parent / name))
        assert (code, err.count("\n")) == (2, 1)
        assert "is part of the state itself; specify another file" in err
    assert (await state.facts())["sessions"] == 1


async def test_a_state_export_writes_a_plain_file_or_reports_the_reason_for_its_failure(
    state: StateCommand, tmp_path: Path
) -> None:
    await fill(state, "anna")
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code, _, err = await state.run("export", str(pipe))
    assert (code, err) == (2, f"emceepee: {pipe} is not a regular file; specify another, or - for standard output\n")
    nowhere = tmp_path / "nowhere" / "file"
    code, _, err = await state.run("export", str(nowhere))
    assert (code, err) == (
        2,
        f"emceepee: {nowhere} cannot be written: No such file or directory; choose another file\n",
    )


async def test_state_can_be_moved_with_its_key_and_is_unusable_without_it(state: StateCommand, tmp_path: Path) -> None:
    async with emceepee(*state.flags) as caller:
        await caller.initialize()
        await caller.value("add_server", name="kept", **stdio_server())
        assert await caller.end() == 0
    moved = tmp_path / "moved" / "state.db"
    moved.parent.mkdir()
    os.rename(state.path, moved)
    async with emceepee("--state", f"sqlite:{moved}", stderr=asyncio.subprocess.PIPE) as refused:
        assert refused.process.stderr is not None
        said = (await refused.process.stderr.read()).decode()
        assert await refused.process.wait() == 2
    assert f"the file {moved}.key is missing" in said
    assert said.count("\n") == 1
    key = (state.path.parent / "state.db.key").read_text().strip()
    async with emceepee("--state", f"sqlite:{moved}", env={KEY_VARIABLE: key}) as caller:
        await caller.initialize()
        assert [server["name"] for server in (await caller.value("list_servers"))["servers"]] == ["kept"]
