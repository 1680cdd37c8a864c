"""A hostile authorization server redirects the browser to an honest one to steal its code (mix-up attack)."""

from collections.abc import AsyncIterator
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp
import pytest

from support.sessions.login_scene import browse
from support.sessions.scene import Scene
from support.system.authorization_server import AuthorizationServer, an_authorization_server
from support.waiting import eventually


@pytest.fixture
async def honest() -> AsyncIterator[AuthorizationServer]:
    """It agrees to every login of a client that it knows, and its answers do not name it."""
    async with an_authorization_server() as running:
        running.answer_changes = {"iss": None}
        yield running


@pytest.fixture
async def hostile() -> AsyncIterator[AuthorizationServer]:
    async with an_authorization_server() as running:
        yield running


async def add(scene: Scene, name: str, server: AuthorizationServer, **oauth: object) -> str:
    settings = {"oauth": oauth} if oauth else {}
    added = await scene.value("add_server", name=name, url=server.resource, **settings)
    return str(added["server"]["authorizationUrl"])


def query_of(url: str) -> dict[str, str]:
    return {name: value for name, (value,) in parse_qs(urlsplit(url).query).items()}


async def page_of(url: str) -> str:
    async with aiohttp.ClientSession() as browser, browser.get(url) as found:
        return await found.text()


@pytest.mark.parametrize("oauth", [{}, {"client_id": "registered-by-hand"}])
async def test_a_code_of_another_authorization_server_is_not_sent_to_the_hostile_one(
    scene: Scene, honest: AuthorizationServer, hostile: AuthorizationServer, oauth: dict[str, object]
) -> None:
    """The hostile page redirects the browser with the client id of emceepee at the honest server."""
    url = await add(scene, "honest", honest)
    known = {name: query_of(url)[name] for name in ("client_id", "redirect_uri")}
    await browse(url)
    await eventually(lambda: scene.status("honest") == "connected")
    asked, hostile.sends_on_to = honest.asked, f"{honest.url}/authorize?{urlencode(known)}"
    page = await page_of(await add(scene, "hostile", hostile, **oauth))
    assert honest.asked == asked + 1
    assert "came to the address of another authorization server" in page
    assert hostile.forms == []


async def test_a_redirect_address_of_one_authorization_server_is_refused_by_another(
    scene: Scene, honest: AuthorizationServer, hostile: AuthorizationServer
) -> None:
    """Its metadata names the honest login page, and its registration the client id of emceepee there."""
    await browse(await add(scene, "honest", honest))
    hostile.page, hostile.numbers = f"{honest.url}/authorize", iter([0])  # client-0
    asked = honest.asked
    assert "another redirect address" in await page_of(await add(scene, "hostile", hostile))
    assert (honest.asked, hostile.forms) == (asked, [])


async def test_the_login_question_names_the_login_page_and_the_authorization_server_that_gets_the_login(
    scene: Scene, honest: AuthorizationServer, hostile: AuthorizationServer
) -> None:
    """The honest server cannot distinguish this from a person who agrees to a new client."""
    hostile.page = f"{honest.url}/authorize"
    await add(scene, "hostile", hostile)
    [question] = (await scene.value("get_elicitations"))["requests"]
    [listed] = (await scene.value("list_servers"))["servers"]
    assert listed["authorizationServer"] == hostile.url
    page, given_to = honest.url.removeprefix("http://"), hostile.url.removeprefix("http://")
    assert f"hostile asks you to log in at {page}." in question["message"]
    assert f"given to the authorization server {given_to}: continue only if" in question["message"]
