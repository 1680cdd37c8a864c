"""Logins behind a real proxy with a password, to servers of a private CA that require a client certificate."""

import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import pytest

from support.callers.configured_emceepee import configured_emceepee, proven
from support.callers.emceepee_process import EmceepeeProcess
from support.callers.http_process import until
from support.sessions.asking import task_id
from support.sessions.replies import text_of
from support.system.authorization_server import AuthorizationServer, an_authorization_server
from support.system.certificates import Authority, server_context
from support.system.forward_proxies import ForwardProxy, tinyproxy

HOST, LOGIN_HOST = "tracker.test", "login.test"  # which no resolver knows: only the proxy leads there


@pytest.fixture
async def proxy(tmp_path: Path, beyond: ForwardProxy) -> AsyncIterator[str]:
    async with tinyproxy(tmp_path, beyond) as address:
        yield proven(address)


class Person:
    """With a browser that knows the way, and perhaps a certificate."""

    def __init__(self, certificate: Path | None = None) -> None:
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._tls.check_hostname, self._tls.verify_mode = False, ssl.CERT_NONE
        if certificate is not None:
            self._tls.load_cert_chain(certificate)

    async def agree(self, url: str) -> None:
        parts = urlsplit(url)
        here = urlunsplit(parts._replace(netloc=f"127.0.0.1:{parts.port}"))
        async with aiohttp.ClientSession() as browser:
            async with browser.get(here, ssl=self._tls, allow_redirects=False) as page:
                back = page.headers["location"]
            async with browser.get(back) as page:
                assert page.status == 200, await page.text()


async def call(caller: EmceepeeProcess) -> str:
    return text_of(await caller.call("execute_tool", server="tracker", tool="echo", args={}))


async def last_error(caller: EmceepeeProcess) -> str:
    """Of the call, and as list_servers tells it."""
    words = str((await caller.error("execute_tool", server="tracker", tool="echo", args={}))["message"])
    (listed,) = (await caller.value("list_servers"))["servers"]
    assert listed["lastError"] in words
    return words


async def log_in_call_and_refresh(caller: EmceepeeProcess, person: Person, server: AuthorizationServer) -> None:
    waiting = await caller.call("execute_tool", server="tracker", tool="echo", args={})
    (question,) = (await caller.value("get_elicitations"))["requests"]
    await person.agree(question["url"])
    assert text_of(await caller.call("get_task_result", task_id=task_id(waiting))) == "echo"
    server.valid.clear()
    assert await call(caller) == "echo"
    assert [form.fields["grant_type"] for form in server.forms] == ["authorization_code", "refresh_token"]
    assert len(server.registrations) == 1
    await caller.value("remove_server", name="tracker")
    await until(lambda: len(server.revoked) == 2, "the tokens were given back")


async def test_a_login_uses_a_proxy_with_a_password_for_private_servers_with_client_certificates(
    tmp_path: Path, authority: Authority, proxy: str, beyond: ForwardProxy
) -> None:
    """Discovery, registration, exchange, refresh, and revocation all use the proxy."""
    ours = authority.issue("client")
    context = server_context(authority.issue(HOST, LOGIN_HOST), clients_of=authority.file)
    async with an_authorization_server(tls=context, host=LOGIN_HOST, server_host=HOST) as server:
        entry = {"url": server.resource, "tls": {"ca": str(authority.file), "cert": str(ours)}}
        async with configured_emceepee(tmp_path, proxy=proxy, **entry, oauth={"issuer": server.url}) as caller:
            await log_in_call_and_refresh(caller, Person(ours), server)
        ways = {f"CONNECT {host}:{server.port} HTTP/1.1" for host in (HOST, LOGIN_HOST)}
        assert set(beyond.lines) == ways


async def test_a_login_at_the_origin_of_the_server_needs_no_additional_setting(
    tmp_path: Path, authority: Authority
) -> None:
    ours = authority.issue("client")
    context = server_context(authority.issue("localhost"), clients_of=authority.file)
    async with an_authorization_server(tls=context, host="localhost") as server:
        tls = {"ca": str(authority.file), "cert": str(ours)}
        async with configured_emceepee(tmp_path, url=server.resource, tls=tls) as caller:
            await log_in_call_and_refresh(caller, Person(ours), server)


async def test_plain_http_of_logins_is_forwarded_by_the_proxy(tmp_path: Path, proxy: str, beyond: ForwardProxy) -> None:
    async with an_authorization_server(host=HOST) as server:
        async with configured_emceepee(tmp_path, proxy=proxy, url=server.resource) as caller:
            waiting = await caller.call("execute_tool", server="tracker", tool="echo", args={})
            (question,) = (await caller.value("get_elicitations"))["requests"]
            await Person().agree(question["url"])
            assert text_of(await caller.call("get_task_result", task_id=task_id(waiting))) == "echo"
        assert {urlsplit(line.split()[1]).hostname for line in beyond.lines} == {HOST}
        assert any(urlsplit(line.split()[1]).path == "/token" for line in beyond.lines)


async def test_a_wrong_certificate_of_the_authorization_server_is_named_in_the_login(
    tmp_path: Path, authority: Authority, proxy: str
) -> None:
    context = server_context(authority.issue(HOST))  # and not for LOGIN_HOST
    async with an_authorization_server(tls=context, host=LOGIN_HOST, server_host=HOST) as server:
        tls = {"ca": str(authority.file), "insecure": False}
        async with configured_emceepee(tmp_path, proxy=proxy, url=server.resource, tls=tls) as caller:
            words = await last_error(caller)
            assert f"{server.url} did not answer" in words
            assert (
                f"its certificate is not valid: Hostname mismatch, certificate is not valid for '{LOGIN_HOST}'" in words
            )
        assert (server.registrations, server.forms) == ([], [])


async def test_a_certificate_of_an_unknown_ca_is_named_even_if_the_check_is_off_for_the_server(
    tmp_path: Path, authority: Authority, proxy: str
) -> None:
    context = server_context(authority.issue(HOST, LOGIN_HOST))
    async with an_authorization_server(tls=context, host=LOGIN_HOST, server_host=HOST) as server:
        entry = {"url": server.resource, "tls": {"insecure": True}}
        async with configured_emceepee(tmp_path, proxy=proxy, **entry) as caller:
            words = await last_error(caller)
            assert "its certificate is not valid: unable to get local issuer" in words
            assert "--ca-bundle" in words
        async with configured_emceepee(tmp_path, "--ca-bundle", str(authority.file), proxy=proxy, **entry) as caller:
            await caller.call("execute_tool", server="tracker", tool="echo", args={})
            assert len((await caller.value("get_elicitations"))["requests"]) == 1


async def test_the_client_certificate_is_sent_only_to_the_own_origin_and_the_configured_issuer(
    tmp_path: Path, authority: Authority, proxy: str
) -> None:
    """Other authorization servers do not receive it."""
    ours = authority.issue("client")
    context = server_context(authority.issue(HOST, LOGIN_HOST), clients_of=authority.file)
    async with an_authorization_server(tls=context, host=LOGIN_HOST, server_host=HOST) as server:
        tls = {"ca": str(authority.file), "cert": str(ours)}
        async with configured_emceepee(tmp_path, proxy=proxy, url=server.resource, tls=tls) as caller:
            words = await last_error(caller)
            assert f"{server.url} did not answer" in words
            assert "client certificate" in words
        assert server.refusals == 1, "the server itself was spoken to"
        assert (server.registrations, server.forms) == ([], [])
