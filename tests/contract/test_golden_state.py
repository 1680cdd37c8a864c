"""The current version reads the state of version 0.2: sessions, servers, tokens, and logins."""

import json
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from emceepee.backends.spec import HttpTarget, StdioTarget
from emceepee.clock import SystemClock
from emceepee.server.http.handshake_connection import RESTARTED
from emceepee.sessions.logins.token_repository import TokenRepository
from emceepee.sessions.records import RecordKind
from emceepee.sessions.secret_records import SecretRecords
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.state.events import EventType
from emceepee.store.redis.connection.redis_address import parse_address
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Store
from support.in_process.http_endpoint import an_endpoint_of
from support.programs.write_golden_state import (
    BACKEND_TASK_ID,
    CALL_ID,
    CONNECTION_ID,
    HANDLE,
    LATER,
    LOGIN,
    NAME,
    PREFIX,
    SCRIPT_ID,
    SESSION_ID,
    STATE_KEY,
    TEXT,
    TOKEN_SET,
    TOKENS_OF,
    WORKING_ID,
    golden_records,
    load,
    newer_records,
)
from support.sessions.event_delivery import take
from support.sessions.installation import an_installation
from support.system.redis_server import redis_server

GOLDEN = Path(__file__).parent / "golden"
FIRST, RELEASED = "state-1", "0.2.0"  # a file from before 0.2.0, and what 0.2.0 writes


async def opened(name: str, folder: Path) -> SqliteStore:
    """A copy: reading a session changes it."""
    shutil.copytree(GOLDEN / name, folder / "copy")
    return await SqliteStore.open(folder / "copy" / "state.db", SystemClock())


@pytest.fixture(params=["first", "sqlite", "redis"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Store]:
    found: Store
    if request.param == "redis":
        with redis_server() as server:
            load(server, json.loads((GOLDEN / RELEASED / "redis.json").read_text()))
            found = await RedisStore.open(parse_address(server.url(PREFIX)), SystemClock(), key=STATE_KEY)
            yield found
            await found.close()
        return
    found = await opened(FIRST if request.param == "first" else RELEASED, tmp_path)
    yield found
    await found.close()


@pytest.fixture
def is_first(request: pytest.FixtureRequest) -> bool:
    return bool(request.node.callspec.params["store"] == "first")


async def test_every_record_of_the_golden_state_is_read_as_it_was_written(store: Store, is_first: bool) -> None:
    stored = await store.take(NAME)
    assert stored is not None
    sealer = await store.sealer()
    assert sealer is not None
    newer = {} if is_first else newer_records(sealer)
    sealed = {key: data for key, data in newer.items() if key.kind in (RecordKind.SCRIPT, RecordKind.BACKEND_TASK)}
    assert {key: data for key, data in stored.records.items() if key not in sealed} == {
        key: data for key, data in {**golden_records(), **newer}.items() if key not in sealed
    }
    for key, data in sealed.items():  # never sealed alike twice
        place = (key.kind, "local", SESSION_ID, key.record_id)
        assert sealer.open(stored.records[key], place=place) == sealer.open(data, place=place)
    assert (stored.head.session_id, stored.head.expires_at, stored.head.due_at) == (SESSION_ID, LATER, LATER)


async def test_the_session_of_the_golden_state_continues(store: Store, is_first: bool) -> None:
    async with an_installation(store=store) as place, an_endpoint_of(place) as client:
        assert await client.status(CONNECTION_ID) == 200
        (session,) = client.sessions()
        assert (session.session_id, session.profile.label, session.profile.was_used) == (SESSION_ID, "tests 1", True)
        found = take(session.activity)
        assert [event.data.get("number") for event in found.events[:2]] == [1, 2]
        expired, *others = found.events[2:]
        assert str(expired.type) == "elicitation_expired"
        failed = [event.data["taskId"] for event in others if event.type == EventType.TASK_FAILED]
        assert failed == ([WORKING_ID] if is_first else [WORKING_ID, BACKEND_TASK_ID, CALL_ID])
        assert found.dropped == 2
        done, *_ = session.tasks.all()
        assert done.result == {"content": [{"type": "text", "text": "gold"}]}
        assert [timer.message for timer in session.timers.all(include_inactive=False)] == ["tea"]
        connection = session.connection("one")
        assert (connection.settings.log_level, connection.settings.subscriptions) == ("debug", ["file:///a"])
        headers = {"mcp_session_id": CONNECTION_ID, "accept": "text/event-stream"}
        answered = await client.ask("GET", **headers, last_event_id="01KDVDNA00626ZT0Q2R2JPCFS1")
        assert RESTARTED in answered.body.decode()
        assert '"id":"seven"' in answered.body.decode()
        if not is_first:
            kept = session.results.get(HANDLE)
            assert await session.results.read(kept, 0, len(TEXT)) == TEXT
            assert session.tasks.get(SCRIPT_ID).tool == "codemode_execute"


async def test_the_servers_of_the_golden_state_are_restored_with_their_secrets(store: Store) -> None:
    registry = ServerRegistry([], store=store)
    await registry.load("local")
    servers = registry.join("local", _Nobody())
    assert list(servers) == ["http", "program"]
    http, program = servers["http"].target, servers["program"].target
    assert isinstance(http, HttpTarget)
    assert isinstance(program, StdioTarget)
    assert (http.url, http.headers) == ("https://example.org/mcp", {"authorization": "Bearer golden"})
    assert (program.args, program.env, servers["program"].timeout) == (("--really",), {"TOKEN": "golden"}, 1.5)


async def test_console_logins_of_the_golden_state_stay_valid_only_with_a_proof_of_the_login(
    store: Store, is_first: bool
) -> None:
    assert await store.logins() == ([] if is_first else [LOGIN])


async def test_a_login_to_a_server_in_the_golden_state_stays_valid(store: Store, is_first: bool) -> None:
    tokens = TokenRepository(SecretRecords(store, SystemClock()), SystemClock())
    assert await tokens.load(TOKENS_OF) == (None if is_first else TOKEN_SET)
    await tokens.close()


class _Nobody:
    def on_server_added(self, spec: object) -> None: ...

    async def on_server_removed(self, name: str) -> None: ...

    async def on_server_configured(self, spec: object) -> None: ...

    def on_disabled_changed(self) -> None: ...
