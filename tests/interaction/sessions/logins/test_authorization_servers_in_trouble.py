"""Slow, broken, or untrusted authorization servers, through the tools: the calls that wait, and their errors."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import cast

import pytest

from emceepee.app.session_parts import open_session, session_parts
from emceepee.backends.oauth import tokens
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.clock import SystemClock
from emceepee.config.settings import Config
from emceepee.console.feed import session_view
from emceepee.sessions.logins import authorizer, token_repository
from emceepee.sessions.parts import SessionParts
from emceepee.wire.json_types import JsonObject
from support.backends.web_backend import WebBackend, a_web_backend
from support.fakes.clock import FakeClock
from support.sessions.asking import task_id
from support.sessions.login_scene import a_login_scene, browse
from support.sessions.scene import Scene
from support.system.authorization_server import AuthorizationServer
from support.waiting import eventually

SOON = 5.0  # what does not need the authorization server takes milliseconds


@pytest.fixture
async def other() -> AsyncIterator[WebBackend]:
    """A server that wants no login."""
    async with a_web_backend() as running:
        yield running


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asks an authorization server again at once."""
    monkeypatch.setattr(token_repository, "PAUSE_AFTER_TROUBLE", 0.0)


async def add(scene: Scene, server: AuthorizationServer) -> JsonObject:
    return await scene.call("add_server", name="tracker", url=server.resource)


async def log_in(scene: Scene, server: AuthorizationServer) -> None:
    added = (await add(scene, server))["structuredContent"]["server"]
    await browse(added["authorizationUrl"])
    await eventually(lambda: scene.status("tracker") == "connected")


async def call(scene: Scene, name: str = "tracker") -> JsonObject:
    return await scene.call("execute_tool", server=name, tool="echo", arguments={})


async def listed(scene: Scene, name: str = "tracker") -> JsonObject:
    (found,) = [each for each in (await scene.value("list_servers"))["servers"] if each["name"] == name]
    return cast(JsonObject, found)


def told_to_the_console(scene: Scene) -> Callable[[str], bool]:
    """Return whether the console shows these words about the server, after a notification of a change."""
    news: list[JsonObject] = []
    scene.session.change_signal.watch(lambda: news.append(session_view(scene.session)))
    return lambda words: any(words in str(view["servers"]) for view in news)


# Who cannot be trusted.


@pytest.mark.parametrize("methods", [None, ["plain"], []])
async def test_a_login_without_pkce_support_is_refused_with_a_clear_error(
    methods: list[str] | None, scene: Scene, server: AuthorizationServer
) -> None:
    server.challenge_methods = methods
    error = (await add(scene, server))["structuredContent"]["error"]
    assert f"The authorization server {server.url} does not say that it supports PKCE with S256" in error["message"]
    assert "Ask its operator to turn that on" in error["message"]
    assert (await scene.value("list_servers"))["servers"] == []
    assert (server.registrations, server.asked, server.forms) == ([], 0, [])


# Who is broken.


@pytest.mark.usefixtures("impatient")
async def test_a_503_at_a_token_refresh_keeps_the_login_and_is_shown_until_it_is_over(
    scene: Scene, server: AuthorizationServer, other: WebBackend
) -> None:
    await log_in(scene, server)
    await scene.value("add_server", name="other", url=other.url)
    is_told = told_to_the_console(scene)
    server.valid.clear()
    server.status = 503
    for _ in range(3):
        error = (await call(scene))["structuredContent"]["error"]
        assert f"{server.url} cannot be asked for that just now: HTTP 503" in error["message"]
        assert "Nobody has to log in again for that: call again in a while" in error["message"]
    trouble = f"the login cannot be renewed: {server.url} is not available (HTTP 503)"
    assert (await listed(scene))["lastError"] == trouble
    assert is_told(trouble)
    assert not (await call(scene, "other")).get("isError")
    assert "lastError" not in await listed(scene, "other")

    server.status = 200
    assert (await call(scene))["content"][0]["text"] == "echo"
    assert "lastError" not in await listed(scene)
    assert (server.asked, server.replayed) == (1, 0)
    assert (await scene.value("get_elicitations"))["requests"] == []


@pytest.mark.usefixtures("impatient")
async def test_a_token_renewed_by_another_session_ends_the_outage_for_this_one(
    parts: SessionParts, scene: Scene, server: AuthorizationServer
) -> None:
    await log_in(scene, server)
    server.valid.clear()
    server.status = 503
    await call(scene)
    assert "lastError" in await listed(scene)
    server.status = 200
    async with open_session("another-session-of-ann", "ann", parts) as session:
        session.wake()
        await call(Scene(session, cast(FakeClock, parts.clock), {}))
    assert "lastError" not in await listed(scene)


@pytest.mark.parametrize("status", [503, 500])
async def test_a_broken_authorization_server_is_named_in_the_login_error(
    status: int, scene: Scene, server: AuthorizationServer
) -> None:
    server.broken = status
    error = (await add(scene, server))["structuredContent"]["error"]
    assert "it requires a login, which failed" in error["message"]
    assert f"{server.url}" in error["message"]
    assert f"HTTP {status}" in error["message"]
    server.broken = None
    assert (await add(scene, server))["structuredContent"]["server"]["status"] == "authorizing"


# Who is slow.


async def test_a_slow_token_refresh_delays_only_the_calls_that_need_it(
    scene: Scene, server: AuthorizationServer, other: WebBackend
) -> None:
    await log_in(scene, server)
    await scene.value("add_server", name="other", url=other.url)
    is_told = told_to_the_console(scene)
    server.is_silent = True
    server.valid.clear()
    waiting = asyncio.ensure_future(call(scene))
    words = f"waiting for {server.url} to renew the login"
    await eventually(lambda: is_told(words), what="the console shows it", within=10)
    assert (await listed(scene))["lastError"] == words
    async with asyncio.timeout(SOON):
        assert not (await call(scene, "other")).get("isError")
        assert "lastError" not in await listed(scene, "other")
    assert not waiting.done()
    server.is_silent = False
    server.go_on.set()
    assert (await waiting)["content"][0]["text"] == "echo"
    assert "lastError" not in await listed(scene)


async def test_a_slow_authorization_server_delays_no_call_while_the_token_is_valid(
    scene: Scene, server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A due token is renewed in the background, here at once."""
    monkeypatch.setattr(tokens, "SHARE_AHEAD", 1)
    server.lives = 60
    await log_in(scene, server)
    server.held.set()
    async with asyncio.timeout(SOON):
        for _ in range(3):
            assert (await call(scene))["content"][0]["text"] == "echo"
    assert server.forms[-1].fields["grant_type"] == "refresh_token"
    await eventually(lambda: len(server.forms) == server.answered + 1)
    server.held.clear()
    server.go_on.set()


async def test_a_slow_login_is_shown_and_delays_no_other_server_or_session(
    server: AuthorizationServer, other: WebBackend
) -> None:
    specs = [
        BackendSpec(name=name, target=HttpTarget(url=url))
        for name, url in (("tracker", server.resource), ("other", other.url))
    ]
    server.is_silent = True
    async with session_parts(Config(servers=tuple(specs)), SystemClock()) as parts, a_login_scene(parts) as scene:
        is_told = told_to_the_console(scene)
        waiting = asyncio.ensure_future(call(scene))
        async with asyncio.timeout(SOON), a_login_scene(parts, "bob") as bobs:
            for each in (scene, bobs):
                assert not (await call(each, "other")).get("isError")
        words = f"waiting for {server.url} to start the login"
        await eventually(lambda: is_told(words), what="the console shows it", within=10)
        assert (await listed(scene))["lastError"] == words
        assert "lastError" not in await listed(scene, "other")
        assert not waiting.done()
        server.is_silent = False
        server.go_on.set()
        assert task_id(await waiting)
        found = await listed(scene)
        assert found["status"] == "authorizing"
        assert found["authorizationUrl"].startswith(server.url)


async def test_a_silent_authorization_server_is_named_in_the_error(
    scene: Scene, server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(authorizer, "TURN_SECONDS", 0.2)
    server.is_silent = True
    error = (await add(scene, server))["structuredContent"]["error"]
    assert f"it requires a login, but {server.url} did not start one within 0.2 s" in error["message"]
    assert (await scene.value("list_servers"))["servers"] == []
