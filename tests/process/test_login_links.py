"""Several people use one emceepee: a login begins and ends in one browser, which shows its principal."""

import re
from collections.abc import AsyncIterator

import aiohttp
import pytest

from support.callers.http_process import HttpCaller, HttpProcess, http_process, until
from support.system.authorization_server import AuthorizationServer
from support.system.ports import free_port

TOKENS = ("--token", "ann=token-of-ann-0123456789", "--token", "bob=token-of-bob-0123456789")
PROOF = re.compile('name="proof" value="([0-9a-f]+)"')


@pytest.fixture(params=[(), ("--workers", "2")], ids=["one process", "two workers"])
async def endpoint(request: pytest.FixtureRequest) -> AsyncIterator[HttpProcess]:
    port = str(free_port())
    async with http_process("--port", port, "--public-url", f"http://127.0.0.1:{port}", *TOKENS, *request.param) as run:
        yield run


@pytest.fixture
async def ann(endpoint: HttpProcess) -> HttpCaller:
    return await endpoint.caller(authorization="Bearer token-of-ann-0123456789")


def a_browser() -> aiohttp.ClientSession:
    """With cookies of its own, also for an address without a name."""
    return aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True))


async def link_for(caller: HttpCaller, server: AuthorizationServer) -> str:
    added = await caller.value("add_server", name="tracker", url=server.resource)
    return str(added["server"]["authorizationUrl"])


async def go_on(browser: aiohttp.ClientSession, link: str, *, follows: bool = True) -> aiohttp.ClientResponse:
    """The browser's page after a press of the button."""
    async with browser.get(link) as page:
        found = PROOF.search(await page.text())
    assert found is not None
    response = await browser.post(link, data={"proof": found[1]}, allow_redirects=follows)
    await response.read()
    return response


async def is_connected(caller: HttpCaller) -> bool:
    return bool((await caller.value("list_servers"))["servers"][0]["connected"])


async def test_the_login_page_names_its_principal_and_the_login_ends_in_the_same_browser(
    endpoint: HttpProcess, ann: HttpCaller, server: AuthorizationServer
) -> None:
    link = await link_for(ann, server)
    assert link.startswith(f"{endpoint.origin}/oauth/login/")
    async with a_browser() as browser:
        async with browser.get(link) as page:
            words = await page.text()
            assert "Log in to tracker for ann" in words
            assert server.url.removeprefix("http://") in words
            assert page.headers["referrer-policy"]
        assert server.asked == 0
        done = await go_on(browser, link)
        assert "<h1>Logged in</h1>" in await done.text()

    async def connected() -> bool:
        return await is_connected(ann)

    await until(connected, "ann is logged in")


async def test_a_login_callback_from_another_browser_is_rejected(
    endpoint: HttpProcess, ann: HttpCaller, server: AuthorizationServer
) -> None:
    """Ann opens her link and sends the next address to a person who is logged in there."""
    link = await link_for(ann, server)
    async with a_browser() as anns, a_browser() as victims:
        address = (await go_on(anns, link, follows=False)).headers["location"]
        assert address.startswith(f"{server.url}/authorize?")
        async with victims.get(address) as page:
            assert (page.status, "Begun in another browser" in await page.text()) == (403, True)
            ended = str(page.url)
        assert (server.asked, server.forms) == (1, [])
        assert not await is_connected(ann)
        async with anns.get(address) as page:  # her own browser still may
            assert page.status == 200
    async with a_browser() as late, late.get(ended) as page:
        assert page.status == 400


async def test_another_site_cannot_press_the_login_button(
    endpoint: HttpProcess, ann: HttpCaller, server: AuthorizationServer
) -> None:
    link = await link_for(ann, server)
    async with a_browser() as browser:
        for data in ({}, {"proof": "x"}, {"proof": "é"}):
            async with browser.post(link, data=data, allow_redirects=False) as refused:
                assert refused.status == 403
        await go_on(browser, link, follows=False)
        async with browser.post(link, data={"proof": "0" * 64}, allow_redirects=False) as refused:
            assert refused.status == 403
        async with browser.post(link, data={}, headers={"origin": "https://evil.test"}) as foreign:
            assert foreign.status == 403
    async with a_browser() as browser, browser.get(link[:-1] + "x") as unknown:
        assert unknown.status == 404
    async with a_browser() as browser, browser.get(f"{endpoint.origin}/oauth/login/{'0' * 64}") as unknown:
        assert unknown.status == 404


async def test_a_pasted_callback_address_is_accepted_from_any_browser(
    ann: HttpCaller, server: AuthorizationServer
) -> None:
    """A person who pastes the address has proved to be the principal."""
    link = await link_for(ann, server)
    async with a_browser() as browser:
        address = (await go_on(browser, link, follows=False)).headers["location"]
        async with browser.get(address, allow_redirects=False) as page:
            ended = page.headers["location"]
    done = await ann.value("finish_authorization", server="tracker", redirect_url=ended)
    assert done["server"]["status"] == "connected"


async def test_a_browser_that_is_logged_in_to_the_console_as_another_principal_cannot_continue(
    endpoint: HttpProcess, ann: HttpCaller, server: AuthorizationServer
) -> None:
    link, own_page = await link_for(ann, server), {"sec-fetch-site": "same-origin"}
    for name, status in (("bob", 403), ("ann", 303)):
        async with a_browser() as browser:
            token = {"token": f"token-of-{name}-0123456789"}
            async with browser.post(f"{endpoint.origin}/console/login", data=token, headers=own_page) as home:
                assert home.status == 200
            async with browser.get(link) as page:
                found = PROOF.search(await page.text())
            assert found is not None
            proof = {"proof": found[1]}
            async with browser.post(link, data=proof, headers=own_page, allow_redirects=False) as answer:
                assert answer.status == status
                assert ("the link is for ann" in await answer.text()) is (status == 403)
