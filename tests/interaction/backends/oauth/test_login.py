"""Logins over real sockets: requests, the person's question, and the stored state in between."""

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace

import aiohttp
import pytest

from emceepee.backends.http1.pool import ConnectionPool
from emceepee.backends.oauth.flow import (
    AskPerson,
    BrowserLogin,
    DeviceLogin,
    ExchangeUnanswered,
    KeptState,
    LoginTerms,
    TokenRequest,
)
from emceepee.backends.oauth.login import Login, LoginFailed
from emceepee.backends.oauth.login_reach import LoginReach
from emceepee.backends.oauth.metadata.challenge import Demand
from emceepee.backends.oauth.oauth_client import Registration
from emceepee.backends.oauth.oauth_messages import OAuthRequest
from emceepee.backends.oauth.oauth_sender import OAuthSender
from emceepee.backends.oauth.oauth_settings import Grant, OAuthSettings
from emceepee.backends.oauth.tokens import TokenType
from emceepee.clock import SystemClock
from support.system.authorization_server import AuthorizationServer, an_authorization_server
from support.waiting import eventually

REDIRECT = "http://127.0.0.1:1/oauth/callback"


@dataclass
class Host:
    """A person who has a browser, and a memory."""

    asked: list[AskPerson] = field(default_factory=list)
    kept: list[KeptState] = field(default_factory=list)
    registrations: dict[str, Registration] = field(default_factory=dict)

    async def keep_login(self, state: KeptState) -> None:
        self.kept.append(state)

    async def keep_registration(self, registration: Registration) -> None:
        self.registrations[registration.issuer] = registration

    async def forget_registration(self, issuer: str, client_id: str) -> None:
        del self.registrations[issuer]

    def ask_person(self, asked: AskPerson) -> None:
        self.asked.append(asked)

    async def browse(self) -> str:
        """Open what is asked for; where the browser ends."""
        await eventually(lambda: bool(self.asked))
        async with aiohttp.ClientSession() as browser, browser.get(self.asked[-1].url, allow_redirects=False) as found:
            return found.headers["location"]


@pytest.fixture
async def server() -> AsyncIterator[AuthorizationServer]:
    async with an_authorization_server() as running:
        yield running


@pytest.fixture
async def sender() -> AsyncIterator[OAuthSender]:
    async with ConnectionPool.running(SystemClock(), None) as pool:
        yield OAuthSender(pool=pool, clock=SystemClock())


def terms(
    server: AuthorizationServer, settings: OAuthSettings | None = None, demand: Demand | None = None
) -> LoginTerms:
    return LoginTerms(
        server_url=server.resource,
        settings=settings or OAuthSettings(),
        demand=demand or Demand(),
        redirect_uri=REDIRECT,
        verifier="v" * 43,
        state="s" * 22,
    )


async def test_a_person_completes_a_login(server: AuthorizationServer, sender: OAuthSender) -> None:
    host = Host()
    login = Login(host, sender, SystemClock())
    running = asyncio.ensure_future(login.run(terms(server)))
    address = await host.browse()
    assert login.is_waiting
    assert login.receive("http://127.0.0.1:1/?code=x&state=other") is not None
    assert login.receive(address) is None
    tokens = await asyncio.wait_for(running, 10)
    assert tokens.access_token in server.valid
    assert [type(state) for state in host.kept] == [BrowserLogin, TokenRequest]
    assert list(host.registrations) == [server.url]
    assert login.receive(address) is not None


async def test_a_login_interrupted_by_a_kill_continues_without_a_second_question(
    server: AuthorizationServer, sender: OAuthSender
) -> None:
    """The kill comes while the person is away, and again before the code is redeemed."""
    before = Host()
    running = asyncio.ensure_future(Login(before, sender, SystemClock()).run(terms(server)))
    address = await before.browse()
    running.cancel()

    class Killed(Host):
        async def keep_login(self, state: KeptState) -> None:
            await super().keep_login(state)
            raise KeyboardInterrupt

    killed = Killed()
    second = Login(killed, sender, SystemClock())
    resumed = asyncio.ensure_future(_caught(second, before.kept[-1]))
    await eventually(lambda: bool(killed.asked))
    assert killed.asked == before.asked
    assert second.receive(address) is None
    await asyncio.wait_for(resumed, 10)
    assert server.forms == []

    after = Host()
    tokens = await asyncio.wait_for(Login(after, sender, SystemClock()).run(killed.kept[-1]), 10)
    assert tokens.access_token in server.valid
    assert after.asked == []
    assert len(server.registrations) == 1


async def _caught(login: Login, start: KeptState) -> None:
    with pytest.raises(KeyboardInterrupt):
        await login.run(start)


async def test_a_device_code_is_entered_in_another_browser(server: AuthorizationServer, sender: OAuthSender) -> None:
    host = Host()
    login = Login(host, sender, SystemClock())
    running = asyncio.ensure_future(login.run(terms(server, OAuthSettings(grant=Grant.DEVICE_CODE))))
    await eventually(lambda: bool(server.forms), within=10)
    (asked,) = host.asked
    assert (asked.url, asked.user_code) == (f"{server.url}/enter", "ABCD-EFGH")
    assert [type(state) for state in host.kept] == [DeviceLogin]
    server.is_approved = True
    tokens = await asyncio.wait_for(running, 10)
    assert tokens.access_token in server.valid


async def test_a_token_is_bound_to_a_dpop_key_and_the_nonce_of_the_server_is_used(
    server: AuthorizationServer, sender: OAuthSender
) -> None:
    server.nonce = "the-nonce"
    settings = OAuthSettings(grant=Grant.CLIENT_CREDENTIALS, client_id="me")
    demand = Demand(accepts_bearer=False, accepts_dpop=True)
    tokens = await Login(Host(), sender, SystemClock()).run(terms(server, settings, demand))
    assert tokens.token_type is TokenType.DPOP
    assert tokens.dpop_key is not None
    first, second = [form.headers["dpop"] for form in server.forms]
    assert first != second


async def test_an_abandoned_login_ends(server: AuthorizationServer, sender: OAuthSender) -> None:
    host = Host()
    login = Login(host, sender, SystemClock())
    running = asyncio.ensure_future(login.run(terms(server)))
    await host.browse()
    login.abandon("The server was removed")
    with pytest.raises(LoginFailed, match="The server was removed"):
        await asyncio.wait_for(running, 10)


class Nobody:
    """Whom no request reaches."""

    async def send(self, request: OAuthRequest, *, dpop_key: str | None = None) -> ExchangeUnanswered:
        return ExchangeUnanswered("it is down")


async def test_a_login_failure_does_not_show_the_api_key_in_the_path_of_the_server() -> None:
    start = LoginTerms(
        server_url="https://host.example/s/kd8f7a6b5c4e3d2f/mcp",
        settings=OAuthSettings(),
        demand=Demand(resource_metadata="https://host.example/s/kd8f7a6b5c4e3d2f/metadata"),
        redirect_uri=REDIRECT,
        verifier="v" * 43,
        state="s" * 22,
    )
    with pytest.raises(LoginFailed, match=re.escape("https://host.example/s/***/metadata cannot be asked")):
        await asyncio.wait_for(Login(Host(), Nobody(), SystemClock()).run(start), 10)


async def test_a_login_for_a_remote_caller_does_not_connect_to_private_addresses(
    server: AuthorizationServer, sender: OAuthSender
) -> None:
    public = replace(sender, reach=LoginReach(is_public=True, server_url=server.resource))
    with pytest.raises(LoginFailed, match="public addresses with TLS"):
        await Login(Host(), public, SystemClock()).run(terms(server))
    assert server.registrations == []
