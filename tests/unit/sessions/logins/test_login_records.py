"""Client registrations, logins in progress, and pinned issuers."""

from dataclasses import replace

import pytest

from emceepee.backends.oauth.flow import BrowserLogin
from emceepee.backends.oauth.oauth_client import OAuthClient, Registration
from emceepee.sessions.logins.login_records import LoginRecords
from emceepee.sessions.secret_records import SecretRecords, ServerKey
from emceepee.store.memory_store import MemoryStore
from support.backends.scripted_login import ISSUER, ScriptedLogin, terms
from support.fakes.clock import FakeClock

KEY = ServerKey("alice", "tracker", "https://mcp.example/mcp")
REGISTRATION = Registration(issuer=ISSUER, client=OAuthClient(client_id="one", is_registered=True))


@pytest.fixture
def records() -> LoginRecords:
    return LoginRecords(SecretRecords(MemoryStore(), FakeClock()))


async def test_a_client_registration_is_stored_per_issuer_and_principal(records: LoginRecords) -> None:
    other = replace(REGISTRATION, issuer="https://other.example")
    for each in (REGISTRATION, other):
        await records.keep_registration("alice", each)
    assert await records.registrations("alice") == {ISSUER: REGISTRATION, other.issuer: other}
    assert await records.registrations("bob") == {}


async def test_only_the_rejected_client_registration_is_deleted(records: LoginRecords) -> None:
    await records.keep_registration("alice", REGISTRATION)
    await records.forget_registration("alice", ISSUER, "another")
    assert await records.registrations("alice") == {ISSUER: REGISTRATION}
    await records.forget_registration("alice", ISSUER, "one")
    await records.forget_registration("alice", ISSUER, "one")
    assert await records.registrations("alice") == {}


async def test_a_login_in_progress_can_be_loaded_again(records: LoginRecords) -> None:
    waiting = ScriptedLogin().begin(terms())
    assert isinstance(waiting, BrowserLogin)
    await records.keep_login(KEY, waiting)
    assert await records.kept_login(KEY) == waiting
    assert await records.kept_login(replace(KEY, principal="bob")) is None
    await records.drop_login(KEY)
    assert await records.kept_login(KEY) is None


async def test_a_configured_client_is_pinned_to_the_issuer_where_it_was_first_used(records: LoginRecords) -> None:
    alice, bob = (ServerKey(name, "tracker", "https://tracker.example/mcp") for name in ("alice", "bob"))
    assert await records.pinned_issuer(alice, "me") is None
    await records.pin_issuer(alice, "me", ISSUER)
    await records.pin_issuer(alice, "me", "https://evil.example")
    assert await records.pinned_issuer(alice, "me") == ISSUER
    assert await records.pinned_issuer(alice, "another") is None
    assert await records.pinned_issuer(bob, "me") is None
    await records.unpin_issuer(alice, "me")
    assert await records.pinned_issuer(alice, "me") is None
