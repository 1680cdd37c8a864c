"""Logins with real processes: a browser returns to any process that listens."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager

import aiohttp
import pytest

from support.callers.emceepee_process import EmceepeeProcess, emceepee
from support.callers.http_process import HttpCaller, HttpProcess, http_process, until
from support.system.authorization_server import AuthorizationServer, an_authorization_server

LOGINS = 6  # with two workers, some browsers return to the worker that did not begin the login


async def log_in(caller: EmceepeeProcess | HttpCaller, server: AuthorizationServer, name: str) -> str:
    """Where the browser ended."""

    async def is_connected() -> bool:
        listed = (await caller.value("list_servers"))["servers"]
        return any(each["connected"] for each in listed if each["name"] == name)

    added = await caller.value("add_server", name=name, url=server.resource)
    async with aiohttp.ClientSession() as browser, browser.get(added["server"]["authorizationUrl"]) as page:
        assert page.status == 200, await page.text()
    await until(is_connected, f"{name} is logged in to")
    reply = await caller.call("execute_tool", server=name, tool="echo", args={})
    assert reply["content"][0]["text"] == "echo"
    return str(page.url)


async def test_with_a_caller_on_standard_input_a_port_is_opened_for_the_browser() -> None:
    async with an_authorization_server() as server, emceepee() as caller:
        await caller.initialize()
        ended = await log_in(caller, server, "tracker")
        assert ended.startswith("http://127.0.0.1:")
        async with aiohttp.ClientSession() as browser:
            async with browser.get(ended) as again:
                assert again.status == 400
            async with browser.get(ended, headers={"host": "evil.test"}) as foreign:
                assert foreign.status == 421
            async with browser.post(ended) as posted:
                assert posted.status == 404


async def test_any_worker_accepts_the_callback_of_the_browser() -> None:
    async with an_authorization_server() as server, http_process("--workers", "2") as endpoint:
        caller = await endpoint.caller()
        for number in range(LOGINS):
            assert (await log_in(caller, server, f"tracker-{number}")).startswith(f"{endpoint.origin}/oauth/callback/")
        assert server.asked == LOGINS


async def test_a_hosted_emceepee_publishes_its_oauth_client_metadata() -> None:
    async with http_process("--public-url", "https://emceepee.test/") as endpoint:
        async with endpoint.http.get(f"{endpoint.origin}/oauth/client.json") as found:
            document = await found.json()
        assert document["client_id"] == "https://emceepee.test/oauth/client.json"
        assert document["redirect_uris"] == ["https://emceepee.test/oauth/callback"]
        digest = "0123456789abcdef" * 2
        async with endpoint.http.get(f"{endpoint.origin}/oauth/client/{digest}.json") as found:
            document = await found.json()
        assert document["client_id"] == f"https://emceepee.test/oauth/client/{digest}.json"
        assert document["redirect_uris"] == [f"https://emceepee.test/oauth/callback/{digest}"]
        async with endpoint.http.get(f"{endpoint.origin}/oauth/client/{digest}x.json") as missing:
            assert missing.status == 404
        async with endpoint.http.get(f"{endpoint.origin}/oauth/callback?code=x&state=guessed") as page:
            assert page.status == 400
            assert "No login is waiting" in await page.text()


@pytest.mark.parametrize("opened", [emceepee, http_process])
async def test_the_browser_shows_that_the_login_was_refused(
    opened: Callable[[], AbstractAsyncContextManager[EmceepeeProcess | HttpProcess]],
) -> None:
    async with an_authorization_server() as server, opened() as running:
        server.answer_changes = {"code": None, "error": "access_denied"}
        caller = running if isinstance(running, EmceepeeProcess) else await running.caller()
        if isinstance(caller, EmceepeeProcess):
            await caller.initialize()
        added = await caller.value("add_server", name="tracker", url=server.resource)
        async with aiohttp.ClientSession() as browser, browser.get(added["server"]["authorizationUrl"]) as page:
            assert page.status == 400
            assert "<h1>Not logged in</h1>" in (words := await page.text())
            assert "access_denied" in words
