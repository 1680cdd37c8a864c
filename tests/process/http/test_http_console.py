"""The console in a real `emceepee serve`: links, logins, and access control."""

import asyncio
import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from emceepee.console.api import ConsoleApi
from emceepee.console.console_request import Route
from emceepee.state.limits import Limits
from support.callers.http_process import HELLO, HttpProcess, http_process
from support.console.http_browser import OPENING, OWN, Browser, the_link
from support.fakes.clock import FakeClock
from support.fakes.session_source import SessionSource
from support.system.issuer import an_issuer

pytestmark = pytest.mark.asyncio(loop_scope="module")
HI = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}


async def logged_in(endpoint: HttpProcess) -> Browser:
    browser = Browser(endpoint.http, endpoint.origin)
    await browser.come_in(endpoint.log)
    return browser


async def test_the_first_console_link_works_once_and_a_new_one_is_printed_for_the_next_browser() -> None:
    async with http_process() as endpoint:
        link = await the_link(endpoint.log)
        assert link.startswith(f"{endpoint.origin}/console/login?code=")
        first, second = Browser(endpoint.http, endpoint.origin), Browser(endpoint.http, endpoint.origin)
        assert (await first.open("/")).headers["location"] == "/console/login"
        await first.log_in(link)
        page = await first.open("/")
        assert (page.status, page.headers["content-type"]) == (200, "text/html; charset=utf-8")
        used = await second.open(link)
        assert (used.status, second.cookie) == (403, None)
        assert "has been used" in used.text
        assert (await first.open(link)).headers["location"] == "/"
        await second.log_in(await the_link(endpoint.log, 2))
        assert [(await browser.open("/waterfall")).status for browser in (first, second)] == [200, 200]
        await first.fetch("POST", "/console/logout")
        assert [(await browser.open("/")).status for browser in (first, second)] == [303, 200]


async def test_all_assets_of_the_console_pages_are_served_with_cache_headers(endpoint: HttpProcess) -> None:
    browser = await logged_in(endpoint)
    referred = re.findall(r'(?:src|href)="(/[^"]+)"', (await browser.open("/")).text)
    assert referred
    for path in referred:
        seen = await browser.fetch("GET", path)
        assert seen.status == 200, path
        assert "immutable" in seen.headers["cache-control"]
        async with endpoint.http.head(endpoint.origin + path) as head:
            assert (head.status, await head.read()) == (200, b"")
    assert (await browser.fetch("GET", "/console/assets/0123456789abcdef/app.js")).status == 404


async def test_the_console_cookie_authenticates_calls_to_the_mcp_endpoint(endpoint: HttpProcess) -> None:
    browser = await logged_in(endpoint)
    seen = await browser.initialize()
    assert seen.status == 200
    stream = await browser.pushes(seen.headers["mcp-session-id"])
    stream.cut()


async def test_a_cookie_sent_from_another_site_grants_no_access(endpoint: HttpProcess) -> None:
    browser = await logged_in(endpoint)
    foreign: list[dict[str, str]] = [
        {"origin": "http://evil.example", "sec-fetch-site": "cross-site"},
        {"origin": "http://127.0.0.1:1", "sec-fetch-site": "same-site"},
        {"origin": "http://127.0.0.1:1"},
        {"sec-fetch-site": "same-site"},
        {"origin": "null"},
    ]
    for headers in foreign:
        assert (await browser.send("POST", "/console/logout", headers=headers)).status == 403, headers
        form = {"token": "x"}
        assert (await browser.send("POST", "/console/login", headers=headers, data=form)).status == 403, headers
    assert (await browser.open("/")).status == 200


async def test_a_foreign_host_name_reaches_no_console_page(endpoint: HttpProcess) -> None:
    browser = await logged_in(endpoint)
    for path in ("/", "/console/login", "/waterfall/json", "/console/nothing"):
        assert (await browser.send("GET", path, headers=OPENING | {"host": "evil.example"})).status == 421


async def test_a_duplicated_cookie_header_is_rejected(endpoint: HttpProcess) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(endpoint.origin.rpartition(":")[2]))
    writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\ncookie: a=1\r\ncookie: b=2\r\nconnection: close\r\n\r\n")
    assert b" 400 " in await asyncio.wait_for(reader.readline(), 30)
    writer.close()


async def test_without_the_console_only_the_mcp_endpoint_is_served() -> None:
    async with http_process("--no-console") as endpoint:
        for path in ("/", "/waterfall", "/console/login", "/waterfall/json", "/console/feed"):
            async with endpoint.http.get(endpoint.origin + path) as response:
                assert (response.status, list(await response.json())) == (404, ["error"])
        assert (await endpoint.caller()).headers["mcp-session-id"]
    assert "console" not in "".join(endpoint.log)


async def test_a_single_token_has_its_own_console_link_and_works_at_the_login_page() -> None:
    async with http_process(env={"EMCEEPEE_TOKEN": "sesame"}) as endpoint:
        browser = await logged_in(endpoint)
        assert (await browser.initialize()).status == 200
        other = Browser(endpoint.http, endpoint.origin)
        assert "not known" in (await other.log_in_with("wrong")).text
        assert other.cookie is None
        assert (await other.log_in_with("sesame")).headers["location"] == "/"
        assert (await other.open("/")).status == 200
    assert "sesame" not in "".join(endpoint.log)


async def test_several_principals_log_in_with_their_tokens_and_are_isolated() -> None:
    async with http_process("--token", "ada=one", "--token", "bob=two") as endpoint:
        assert await the_link(endpoint.log) == f"{endpoint.origin}/console/login"
        assert "(log in with a token)" in "".join(endpoint.log)
        ada, bob = Browser(endpoint.http, endpoint.origin), Browser(endpoint.http, endpoint.origin)
        assert (await ada.initialize()).status == 401
        for browser, token in ((ada, "one"), (bob, "two")):
            assert (await browser.log_in_with(token)).status == 303
        session = (await ada.initialize()).headers["mcp-session-id"]
        headers = {"mcp-session-id": session, "accept": "application/json, text/event-stream"}
        ping = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
        assert (await ada.fetch("POST", "/mcp", json=ping, headers=headers)).status == 200
        assert (await bob.fetch("POST", "/mcp", json=ping, headers=headers)).status == 404


async def test_a_token_of_an_authorization_server_logs_in_to_the_console_for_an_hour() -> None:
    async with an_issuer() as issuer:
        resource = "https://mcp.example/mcp"
        async with http_process("--oauth-issuer", issuer.url, "--oauth-resource", resource) as endpoint:
            browser = Browser(endpoint.http, endpoint.origin)
            assert (await browser.log_in_with(issuer.token(aud="https://other.example"))).status == 403
            seen = await browser.log_in_with(issuer.token(aud=resource))
            assert "; Max-Age=3600;" in seen.headers["set-cookie"]
            assert (await browser.initialize()).status == 200


async def test_the_console_link_is_in_its_own_file_and_not_in_the_log_file(tmp_path: Path) -> None:
    log, link_file = tmp_path / "log", tmp_path / "link"
    async with http_process("--log-file", str(log), "--log-format", "json", "--link-file", str(link_file)) as endpoint:
        link = await the_link(endpoint.log)
        assert link_file.read_text("utf-8") == f"{link}\n"
        assert link_file.stat().st_mode & 0o777 == 0o600
        assert link.partition("code=")[2] not in log.read_text("utf-8")


async def test_an_open_console_page_does_not_delay_the_shutdown() -> None:
    async with http_process() as endpoint:
        browser = await logged_in(endpoint)
        session = (await browser.initialize()).headers["mcp-session-id"]
        stream = await browser.pushes(session)
        began = time.monotonic()
        endpoint.process.terminate()
        assert await stream.rest() == []
        await asyncio.wait_for(endpoint.process.wait(), 30)
        assert time.monotonic() - began < 5


async def test_a_session_of_the_console_page_connects_no_servers_by_itself(endpoint: HttpProcess) -> None:
    """Pages of other sites may also send the header if the operator allows them."""
    asked = {"origin": "http://localhost:3000", "access-control-request-method": "POST"}
    async with endpoint.http.options(endpoint.url, headers=asked) as preflight:
        assert "emceepee-connect" in preflight.headers["access-control-allow-headers"]
    browser = await logged_in(endpoint)
    seen: Any = await browser.initialize(**{"emceepee-connect": "on-use"})
    assert seen.status == 200


def data_routes() -> list[Route]:
    """Everything that the installation serves of anyone's, from its own table."""
    return list(ConsoleApi(SessionSource(), FakeClock(), Limits()).routes())


async def test_no_console_route_returns_data_without_a_login(endpoint: HttpProcess) -> None:
    stranger = Browser(endpoint.http, endpoint.origin)
    routes = data_routes()
    assert len(routes) > 10
    for route in routes:
        for cookie in (None, f"emceepee_{endpoint.origin.rpartition(':')[2]}=made-up"):
            stranger.cookie = cookie
            seen = await stranger.fetch(route.method, route.path, json={} if route.method == "POST" else None)
            assert (seen.status, json.loads(seen.text)["error"]["code"]) == (401, "ERR_NOT_LOGGED_IN"), route.path


async def test_a_page_of_another_site_cannot_make_the_browser_answer_a_question(endpoint: HttpProcess) -> None:
    browser = await logged_in(endpoint)
    for route in data_routes():
        for site in ("same-site", "cross-site"):
            headers = {"sec-fetch-site": site, "sec-fetch-mode": "cors", "content-type": "application/json"}
            seen = await browser.send(route.method, route.path, headers=headers)
            assert seen.status == 401, (route.path, site)


async def test_the_console_hides_requests_of_other_principals() -> None:
    async with http_process("--token", "ada=one", "--token", "bob=two") as endpoint:
        caller = await endpoint.caller(authorization="Bearer one")
        await caller.call("list_servers")
        seen = {}
        for name, token in (("ada", "one"), ("bob", "two")):
            browser = Browser(endpoint.http, endpoint.origin)
            await browser.log_in_with(token)
            seen[name] = json.loads((await browser.fetch("GET", "/waterfall/json")).text)["stats"]["totalRequests"]
        assert seen["ada"] >= 1
        assert seen["bob"] == 0


async def test_an_open_console_feed_does_not_delay_the_shutdown() -> None:
    async with http_process() as endpoint:
        browser = await logged_in(endpoint)
        headers = OWN | {"cookie": browser.cookie or ""}
        async with endpoint.http.get(f"{endpoint.origin}/console/feed", headers=headers) as response:
            assert response.status == 200
            assert (await response.content.readline()).startswith(b"event: hello")
            began = time.monotonic()
            endpoint.process.terminate()
            await asyncio.wait_for(endpoint.process.wait(), 30)
        assert time.monotonic() - began < 5
