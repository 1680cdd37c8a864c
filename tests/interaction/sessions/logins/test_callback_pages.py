"""The callback page in the browser appears after the end of the login and shows its outcome."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest

from emceepee.app.session_parts import session_parts
from emceepee.clock import SystemClock
from emceepee.config.settings import Config, HttpConfig
from emceepee.sessions.logins import server_logins
from emceepee.sessions.logins.server_logins import FixedCallback
from emceepee.sessions.parts import SessionParts
from emceepee.web.callback import OTHER_BROWSER
from support.sessions.login_scene import DurableStore, a_login_scene, browse
from support.sessions.scene import Scene
from support.system.authorization_server import AuthorizationServer
from support.waiting import eventually

SHARED = HttpConfig(public_url="https://emceepee.test", tokens={"one": "ann", "two": "bob"})


@dataclass
class Page:
    status: int
    text: str
    title: str = field(init=False)

    def __post_init__(self) -> None:
        self.title = self.text.partition("<h1>")[2].partition("</h1>")[0]


async def page_of(url: str) -> Page:
    async with aiohttp.ClientSession() as browser, browser.get(url) as found:
        return Page(found.status, await found.text())


async def login_url(scene: Scene, server: AuthorizationServer, name: str = "tracker") -> str:
    added = await scene.value("add_server", name=name, url=server.resource)
    return str(added["server"]["authorizationUrl"])


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"answer_changes": {"code": None, "error": "access_denied", "error_description": "<b>no</b>"}}, "access_denied"),
    ({"answer_changes": {"iss": "https://forged.example"}}, "comes from https://forged.example"),
    ({"refuses_codes": True}, "invalid_grant"),
    ({"status": 503}, "HTTP 503"),
]


@pytest.mark.parametrize(("trouble", "words"), REFUSED, ids=[words for _, words in REFUSED])
async def test_the_callback_page_shows_why_a_login_failed(
    scene: Scene, server: AuthorizationServer, trouble: dict[str, Any], words: str
) -> None:
    for name, value in trouble.items():
        setattr(server, name, value)
    page = await page_of(await login_url(scene, server))
    assert (page.status, page.title) == (400, "Not logged in")
    assert "emceepee is not logged in to tracker. " in page.text
    assert words in page.text
    assert "<b>" not in page.text
    await eventually(lambda: scene.status("tracker") == "error")


async def test_the_callback_page_shows_success_once_the_tokens_are_stored(
    scene: Scene, server: AuthorizationServer
) -> None:
    url = await login_url(scene, server)
    server.held.set()
    loading = asyncio.create_task(page_of(url))
    await eventually(lambda: bool(server.forms))
    assert not loading.done()
    server.go_on.set()
    page = await asyncio.wait_for(loading, 10)
    assert (page.status, page.title) == (200, "Logged in")


async def test_reloading_the_callback_page_shows_the_same_outcome(scene: Scene, server: AuthorizationServer) -> None:
    ended = await browse(await login_url(scene, server), comes_back=False)
    server.held.set()
    loading = [asyncio.create_task(page_of(ended)) for _ in range(2)]
    await eventually(lambda: bool(server.forms))
    server.go_on.set()
    assert [(await asyncio.wait_for(each, 10)).title for each in loading] == ["Logged in", "Logged in"]
    assert len(server.forms) == 1


async def test_the_callback_page_does_not_wait_forever_for_the_authorization_server(
    scene: Scene, server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_logins, "OUTCOME_SECONDS", 0.05)
    url = await login_url(scene, server)
    server.held.set()
    page = await page_of(url)
    assert (page.status, page.title) == (202, "Login not finished")
    server.go_on.set()
    await eventually(lambda: scene.status("tracker") == "connected")


async def test_the_callback_page_is_delivered_though_its_process_is_about_to_exit(server: AuthorizationServer) -> None:
    """`emceepee auth login` exits as soon as the tokens are stored."""
    async with session_parts(Config(), SystemClock()) as parts:
        async with a_login_scene(parts) as scene:
            url = await login_url(scene, server)
            server.held.set()
            loading = asyncio.create_task(page_of(url))
            await eventually(lambda: bool(server.forms))
        server.go_on.set()
    assert "emceepee is stopping" in (await asyncio.wait_for(loading, 10)).text


async def test_a_callback_for_a_deleted_login_link_is_rejected(server: AuthorizationServer) -> None:
    config, callback = Config(http=SHARED), FixedCallback("http://127.0.0.1:1/callback")
    async with session_parts(config, SystemClock(), callback=callback) as parts, a_login_scene(parts) as scene:
        assert parts.logins is not None
        link = await parts.logins.links.find((await login_url(scene, server)).rpartition("/")[2])
        assert link is not None
        ended = await browse(link.url, comes_back=False)
        await parts.logins.links.forget(parse_qs(urlsplit(ended).query)["state"][0])
        assert await parts.logins.receive(ended, "cookie") is OTHER_BROWSER
        assert scene.status("tracker") == "authorizing"


@asynccontextmanager
async def two_processes() -> AsyncIterator[tuple[SessionParts, SessionParts]]:
    store = DurableStore()
    async with (
        session_parts(Config(), SystemClock(), store) as here,
        session_parts(Config(), SystemClock(), store) as there,
    ):
        yield here, there


@pytest.mark.parametrize(("refuses", "title"), [(False, "Logged in"), (True, "Not logged in")])
async def test_a_callback_at_another_process_shows_the_outcome_of_the_login(
    server: AuthorizationServer, refuses: bool, title: str
) -> None:
    server.refuses_codes = refuses
    async with two_processes() as (here, there), a_login_scene(here) as scene:
        assert there.logins is not None
        ended = await browse(await login_url(scene, server), comes_back=False)
        outcome = await asyncio.wait_for(there.logins.receive(ended), 10)
        assert outcome.title == title
        assert ("invalid_grant" in outcome.words) is refuses


async def test_an_invalid_callback_at_another_process_is_answered_at_once(
    server: AuthorizationServer,
) -> None:
    server.answer_changes = {"code": None}
    async with two_processes() as (here, there), a_login_scene(here) as scene:
        assert there.logins is not None
        ended = await browse(await login_url(scene, server), comes_back=False)
        outcome = await asyncio.wait_for(there.logins.receive(ended), 10)
        assert "has no code" in outcome.words
        assert scene.status("tracker") == "authorizing"


async def test_a_callback_after_its_process_died_reports_that_the_answer_is_stored(
    server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process that began the login is gone, and no call has used the server since."""
    monkeypatch.setattr(server_logins, "TAKE_SECONDS", 0.05)
    store = DurableStore()
    async with session_parts(Config(), SystemClock(), store) as before, a_login_scene(before) as scene:
        ended = await browse(await login_url(scene, server), comes_back=False)
    async with session_parts(Config(), SystemClock(), store) as after:
        assert after.logins is not None
        outcome = await after.logins.receive(ended)
        assert (outcome.status, outcome.title) == (202, "Login not finished")
        assert "has stored your answer" in outcome.words
