"""Links that begin a login, and the browsers that may answer."""

import pytest

from emceepee.backends.oauth.authorization import AuthorizationRequest
from emceepee.backends.oauth.flow import BrowserLogin, Grantor
from emceepee.backends.oauth.metadata.metadata import ServerMetadata
from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.sessions.logins.login_links import LINK_PATH, LoginLinks
from emceepee.sessions.secret_records import SecretRecords, ServerKey
from emceepee.store.memory_store import MemoryStore
from support.fakes.clock import FakeClock

KEY = ServerKey("ann", "tracker", "https://mcp.example/mcp")
STATE = "the state"
PAGE = "https://login.example/authorize?state=the+state"


def waiting() -> BrowserLogin:
    request = AuthorizationRequest(
        client=OAuthClient(client_id="c"),
        redirect_uri="https://x/cb",
        resource="r",
        scopes=(),
        verifier="v",
        state=STATE,
    )
    server = ServerMetadata(issuer="https://issuer.example", token_endpoint="https://issuer.example/token")
    return BrowserLogin(grantor=Grantor(resource="r", server=server, scopes=()), request=request, url=PAGE)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def links(store: MemoryStore) -> LoginLinks:
    return LoginLinks(SecretRecords(store, FakeClock()))


async def ticket_of(links: LoginLinks) -> str:
    return (await links.make(KEY, waiting())).removeprefix(LINK_PATH)


async def test_a_login_link_names_principal_server_and_issuer_but_no_secret(links: LoginLinks) -> None:
    ticket = await ticket_of(links)
    link = await links.find(ticket)
    assert link is not None
    assert (link.principal, link.server, link.host, link.issuer_host) == (
        "ann",
        "tracker",
        "login.example",
        "issuer.example",
    )
    assert STATE not in ticket
    assert PAGE not in repr(link)


async def test_only_the_browser_that_followed_the_login_link_may_answer(links: LoginLinks) -> None:
    ticket = await ticket_of(links)
    assert not await links.may_answer(STATE, None)
    assert not await links.may_answer(STATE, "cookie")
    assert await links.begin(ticket, "cookie") == PAGE
    assert await links.may_answer(STATE, "cookie")
    assert not await links.may_answer(STATE, "other")
    assert not await links.may_answer(STATE, None)


async def test_a_login_link_and_its_browser_binding_survive_a_restart(store: MemoryStore, links: LoginLinks) -> None:
    ticket = await ticket_of(links)
    await links.begin(ticket, "cookie")
    after = LoginLinks(SecretRecords(store, FakeClock()))
    assert await ticket_of(after) == ticket
    assert await after.may_answer(STATE, "cookie")


async def test_the_link_of_a_finished_login_is_unknown(links: LoginLinks) -> None:
    ticket = await ticket_of(links)
    await links.forget(STATE)
    assert await links.find(ticket) is None
    assert await links.begin(ticket, "cookie") is None


async def test_a_login_without_a_link_accepts_any_browser(links: LoginLinks) -> None:
    """The operator began the login at a terminal."""
    assert await links.may_answer("another state", None)


async def test_no_browser_may_answer_a_login_whose_link_is_lost(links: LoginLinks) -> None:
    assert not await links.may_answer("another state", "cookie", has_link=True)
