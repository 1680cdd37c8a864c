"""Servers behind a real proxy with a password, with a private CA and client certificates, or on a Unix socket."""

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from support.backends.web_backend import WebBackend, a_web_backend
from support.callers.configured_emceepee import configured_emceepee, proven
from support.callers.emceepee_process import BOUND, EmceepeeProcess
from support.sessions.replies import text_of
from support.system.balancers import running_balancer
from support.system.certificates import Authority, server_context, split
from support.system.forward_proxies import PASSWORD, ForwardProxy, tinyproxy
from support.system.ports import free_port
from support.waiting import eventually

HOST = "tracker.test"  # which no resolver knows: only the proxy leads there
CALLS = 20


@pytest.fixture
async def proxy(tmp_path: Path, beyond: ForwardProxy) -> AsyncIterator[str]:
    async with tinyproxy(tmp_path, beyond) as address:
        yield address


async def echo(caller: EmceepeeProcess, text: str) -> str:
    return text_of(await caller.call("execute_tool", server="tracker", tool="echo", args={"text": text}))


async def last_error(caller: EmceepeeProcess) -> str:
    """Why the server is not connected; nothing that is secret."""
    result = await caller.error("execute_tool", server="tracker", tool="echo", args={})
    words = str(result["message"])
    for secret in (PASSWORD, "wr0ng", "Basic "):
        assert secret not in words
    return words


async def use(caller: EmceepeeProcess, backend: WebBackend) -> None:
    """Calls, and a stream that is heard while it is written."""
    for number in range(CALLS):
        assert json.loads(await echo(caller, str(number))) == {"text": str(number)}
    promoted = await caller.value("execute_tool", server="tracker", tool="wait", args={}, timeout_ms=1)
    call = await backend.next_call()
    task = promoted["proxy_task"]["task_id"]
    for step in range(1, 4):
        call.progress(step, step)

        async def has_come(step: int = step) -> bool:
            found = (await caller.value("get_task", task_id=task))["task"]
            return bool(found.get("progress", {}).get("progress") == step)

        await eventually(has_come, what=f"step {step} is known")
    call.finish()
    assert text_of(await caller.call("get_task_result", task_id=task)) == "done"


async def test_calls_and_streams_use_a_proxy_with_a_password_for_a_private_server_with_client_certificates(
    tmp_path: Path, authority: Authority, proxy: str, beyond: ForwardProxy
) -> None:
    context = server_context(authority.issue(HOST), clients_of=authority.file)
    certificate, key = split(authority.issue("client"))
    files = {"ca": "tls/ca.pem", "cert": str(certificate.relative_to(tmp_path)), "key": str(key)}
    async with (
        a_web_backend(tls=context) as backend,
        configured_emceepee(
            tmp_path, proxy=proven(proxy), url=f"https://{HOST}:{backend.port}/mcp", tls=files
        ) as caller,
    ):
        await use(caller, backend)
        assert set(beyond.lines) == {f"CONNECT {HOST}:{backend.port} HTTP/1.1"}
        assert len(beyond.asked) < 8  # and not one for each call
        assert not any("authorization" in head.lower() for head in beyond.asked)


async def test_plain_http_is_forwarded_by_the_proxy(tmp_path: Path, proxy: str, beyond: ForwardProxy) -> None:
    async with (
        a_web_backend() as backend,
        configured_emceepee(tmp_path, proxy=proven(proxy), url=f"http://{HOST}:{backend.port}/mcp") as caller,
    ):
        await use(caller, backend)
        assert {line.split()[1] for line in beyond.lines} == {f"http://{HOST}:{backend.port}/mcp"}


@pytest.mark.parametrize(
    ("scheme", "login", "said"),
    [
        ("https", "", "cannot be reached: the proxy {} wants a password, in HTTPS_PROXY (HTTP 407"),
        ("http", "", "cannot be reached: the proxy {} wants a password, in HTTP_PROXY (HTTP 407"),
        ("https", "ada:wr0ng@", "cannot be reached: the proxy {} does not accept the password in HTTPS_PROXY"),
        ("http", "ada:wr0ng@", "HTTP 401 (through the proxy {}, whose answer this may be)"),  # as tinyproxy says it
    ],
)
async def test_a_missing_or_wrong_proxy_password_is_reported_as_refused_by_the_proxy(
    scheme: str, login: str, said: str, tmp_path: Path, proxy: str
) -> None:
    async with configured_emceepee(tmp_path, proxy=f"http://{login}{proxy}", url=f"{scheme}://{HOST}/mcp") as caller:
        assert said.format(proxy) in await last_error(caller)


async def test_a_server_on_this_machine_is_reached_without_the_proxy(tmp_path: Path, beyond: ForwardProxy) -> None:
    async with (
        a_web_backend() as backend,
        configured_emceepee(tmp_path, proxy=f"http://{beyond.address}", url=backend.url) as caller,
    ):
        await use(caller, backend)
        assert beyond.asked == []


async def test_a_wrong_certificate_is_named_with_host_reason_and_remedy(
    tmp_path: Path, authority: Authority, proxy: str
) -> None:
    async with a_web_backend(tls=server_context(authority.issue("elsewhere.test"))) as backend:
        url = f"https://{HOST}:{backend.port}/mcp"
        async with configured_emceepee(tmp_path, proxy=proven(proxy), url=url) as caller:
            words = await last_error(caller)
            assert (
                f"{HOST}:{backend.port} cannot be reached: its certificate is not valid: unable to get local" in words
            )
            assert "--ca-bundle" in words
        async with configured_emceepee(
            tmp_path, "--ca-bundle", str(authority.file), proxy=proven(proxy), url=url
        ) as caller:
            words = await last_error(caller)
            assert f"its certificate is not valid: Hostname mismatch, certificate is not valid for '{HOST}'" in words
            assert "tls.server_name" in words
        async with configured_emceepee(
            tmp_path,
            "--ca-bundle",
            str(authority.file),
            proxy=proven(proxy),
            url=url,
            tls={"server_name": "elsewhere.test"},
        ) as caller:
            assert json.loads(await echo(caller, "hello")) == {"text": "hello"}


async def test_a_missing_or_unknown_client_certificate_is_named(tmp_path: Path, authority: Authority) -> None:
    """HAProxy names the missing certificate in a TLS alert."""
    port, bundle = free_port(), authority.issue("localhost")
    stranger = Authority(tmp_path / "other", "another CA").issue("client")
    async with (
        a_web_backend() as backend,
        running_balancer("haproxy", terminating(port, bundle, authority.file, backend.port), tmp_path, port=port),
    ):
        url, ca = f"https://localhost:{port}/mcp", str(authority.file)
        async with configured_emceepee(tmp_path, url=url, tls={"ca": ca}) as caller:
            assert "it wants a client certificate: give one with tls.cert and tls.key" in await last_error(caller)
        async with configured_emceepee(tmp_path, url=url, tls={"ca": ca, "cert": str(stranger)}) as caller:
            assert "it does not accept our client certificate (tlsv1 alert unknown ca)" in await last_error(caller)
        ours = str(authority.issue("client"))
        async with configured_emceepee(tmp_path, url=url, tls={"ca": ca, "cert": ours}) as caller:
            await use(caller, backend)


def terminating(port: int, certificate: Path, clients_of: Path, backend: int) -> str:
    return f"""
defaults
    mode http
    timeout connect 5s
    timeout client 60s
    timeout server 60s

frontend private
    bind 127.0.0.1:{port} ssl crt {certificate} ca-file {clients_of} verify required
    default_backend one

backend one
    server one 127.0.0.1:{backend}
"""


async def test_a_server_on_a_unix_socket_works_like_any_other(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory() as short:  # the path of a socket must be
        path = Path(short) / "tracker.sock"
        async with (
            a_web_backend(path=path) as backend,
            configured_emceepee(tmp_path, proxy="http://127.0.0.1:1", url=backend.url) as caller,
        ):
            await use(caller, backend)
            shown = (await caller.value("list_servers"))["servers"][0]
            assert shown["url"] == f"unix://{path}:/mcp"
            added = await caller.value("add_server", name="again", url=backend.url)
            assert added["server"]["status"] == "connected"
    async with configured_emceepee(tmp_path, url=f"unix://{path}:/mcp") as caller:
        assert f"{path} cannot be reached: No such file or directory" in await last_error(caller)


async def test_secrets_in_the_configuration_are_named_in_the_log_without_their_values(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("t0ken\n")
    headers = {"Authorization": "Bearer spelled0ut", "X-Api-Key": "${file:token}"}
    async with a_web_backend() as backend:
        url = backend.url.replace("http://", "https://")
        async with configured_emceepee(tmp_path, url=url, headers=headers, tls={"insecure": True}) as caller:
            async with asyncio.timeout(BOUND):
                await last_error(caller)
    log = (tmp_path / "log").read_text()
    assert 'warn  certificates_not_checked servers="[\\"tracker\\"]" because=tls.insecure' in log
    assert 'info  secrets_in_configuration keys="[\\"mcpServers.tracker.headers.Authorization\\"]"' in log
    assert "spelled0ut" not in log
    assert "t0ken" not in log
