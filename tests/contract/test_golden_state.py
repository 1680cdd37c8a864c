"""State that version 0.2 wrote is read by this one: sessions and servers."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from emceepee.backends.spec import HttpTarget, StdioTarget
from emceepee.clock import SystemClock
from emceepee.server.http.handshake_connection import RESTARTED
from emceepee.sessions.registry import ServerRegistry
from emceepee.store.sqlite import SqliteStore
from support.in_process.http_endpoint import an_endpoint_of
from support.programs.write_golden_state import CONNECTION_ID, LATER, NAME, SESSION_ID, golden_records
from support.sessions.event_delivery import take
from support.sessions.installation import an_installation

GOLDEN = Path(__file__).parent / "golden" / "state-1"


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    """A copy: reading a session changes it."""
    shutil.copytree(GOLDEN, tmp_path / "copy")
    opened = await SqliteStore.open(tmp_path / "copy" / "state.db", SystemClock())
    yield opened
    await opened.close()


async def test_every_record_is_as_it_was_written(store: SqliteStore) -> None:
    stored = await store.take(NAME)
    assert stored is not None
    assert dict(stored.records) == golden_records()
    assert (stored.head.session_id, stored.head.expires_at, stored.head.due_at) == (SESSION_ID, LATER, LATER)


async def test_the_session_goes_on(store: SqliteStore) -> None:
    async with an_installation(store=store) as place, an_endpoint_of(place) as client:
        assert await client.status(CONNECTION_ID) == 200
        (session,) = client.sessions()
        assert (session.session_id, session.profile.label, session.profile.was_used) == (SESSION_ID, "tests 1", True)
        found = take(session.activity)
        assert [event.data.get("number") for event in found.events[:2]] == [1, 2]
        assert [str(event.type) for event in found.events[2:]] == ["elicitation_expired", "task_failed"]
        assert found.dropped == 2
        done, lost = session.tasks.all()
        assert (done.result, lost.status) == ({"content": [{"type": "text", "text": "gold"}]}, "failed")
        assert [timer.message for timer in session.timers.all(include_inactive=False)] == ["tea"]
        connection = session.connection("one")
        assert (connection.settings.log_level, connection.settings.subscriptions) == ("debug", ["file:///a"])
        headers = {"mcp_session_id": CONNECTION_ID, "accept": "text/event-stream"}
        answered, _ = await client.start("GET", **headers, last_event_id="01KDVDNA00626ZT0Q2R2JPCFS1")
        assert RESTARTED in answered.body.decode()
        assert '"id":"seven"' in answered.body.decode()


async def test_added_servers_are_there_with_their_secrets_and_people_log_in_again(store: SqliteStore) -> None:
    registry = ServerRegistry([], store=store)
    await registry.load("local")
    servers = registry.join("local", _Nobody())
    assert list(servers) == ["http", "program"]
    http, program = servers["http"].target, servers["program"].target
    assert isinstance(http, HttpTarget)
    assert isinstance(program, StdioTarget)
    assert (http.url, http.headers) == ("https://example.org/mcp", {"authorization": "Bearer golden"})
    assert (program.args, program.env, servers["program"].timeout) == (("--really",), {"TOKEN": "golden"}, 1.5)
    assert await store.logins() == []  # without a proof that they were stored with the key


class _Nobody:
    def on_server_added(self, spec: object) -> None: ...

    async def on_server_removed(self, name: str) -> None: ...

    async def on_server_configured(self, spec: object) -> None: ...

    def on_disabled_changed(self) -> None: ...
