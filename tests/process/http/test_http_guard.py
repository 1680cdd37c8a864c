"""Authentication and authorization over HTTP."""

import asyncio
import json
import socket
import sys
from pathlib import Path
from typing import Any

import jwt
import pytest
from aiohttp import ClientResponse

from support.callers.http_process import HELLO, HttpProcess, http_process
from support.server_programs.stdio_entries import stdio_server
from support.system.authorization_server import an_authorization_server
from support.system.issuer import an_issuer
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
HI = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}


async def knock(endpoint: HttpProcess, **headers: str) -> ClientResponse:
    """Try to begin a session. Header names are written with underscores."""
    given = {name.replace("_", "-"): text for name, text in headers.items()}
    async with endpoint.http.post(endpoint.url, json=HI, headers=given) as response:
        await response.read()
        return response


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8080", "[::1", "]", "a b", "127.0.0.1.evil.example", "@"]
)
async def test_a_foreign_host_name_gets_misdirected_request(endpoint: HttpProcess, host: str) -> None:
    response = await knock(endpoint, host=host)
    assert response.status in (400, 421)
    assert "mcp-session-id" not in response.headers


@pytest.mark.parametrize("host", ["localhost", "LocalHost:1", "127.0.0.1", "[::1]:80"])
async def test_host_names_of_this_machine_are_accepted(endpoint: HttpProcess, host: str) -> None:
    assert (await knock(endpoint, host=host)).status == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "", "http://[::1", "file://", "http://localhost.evil.example"]
)
async def test_pages_of_other_sites_may_not_call(endpoint: HttpProcess, origin: str) -> None:
    response = await knock(endpoint, origin=origin)
    assert response.status == 403


@pytest.mark.parametrize("origin", ["http://localhost:3000", "https://127.0.0.1"])
async def test_pages_of_this_machine_may_call(endpoint: HttpProcess, origin: str) -> None:
    assert (await knock(endpoint, origin=origin)).status == 200


async def test_additional_host_names_and_origins_can_be_allowed() -> None:
    async with http_process("--allow-host", "mcp.example", "--allow-origin", "https://page.example") as endpoint:
        assert (await knock(endpoint, host="mcp.example:8080", origin="https://page.example")).status == 200
        assert (await knock(endpoint, host="other.example")).status == 421
        assert (await knock(endpoint, origin="https://other.example")).status == 403


async def test_cors_preflight_accepts_an_allowed_page_and_rejects_others() -> None:
    async with http_process("--allow-origin", "https://page.example", "--token", "secret") as endpoint:
        asked = {"origin": "https://page.example", "access-control-request-method": "POST"}
        async with endpoint.http.options(endpoint.url, headers=asked) as preflight:
            assert preflight.status == 204
            assert preflight.headers["access-control-allow-origin"] == "https://page.example"
            assert "mcp-session-id" in preflight.headers["access-control-allow-headers"]
        refused = await knock(endpoint, origin="https://page.example")
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (401, "https://page.example")
        async with endpoint.http.options(endpoint.url, headers=asked | {"origin": "https://other.example"}) as other:
            assert other.status == 403
            assert "access-control-allow-origin" not in other.headers


async def test_every_response_has_security_headers(endpoint: HttpProcess) -> None:
    for response in (await knock(endpoint), await knock(endpoint, host="evil.example")):
        assert response.headers["x-content-type-options"] == "nosniff"
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert "server" not in response.headers


async def test_a_body_over_the_limit_is_rejected_and_never_parsed() -> None:
    async with http_process(env={"EMCEEPEE_CONFIG": '{"limits": {"request_body_bytes": 10000}}'}) as endpoint:
        async with endpoint.http.post(
            endpoint.url, data=b" " * 10_001, headers={"content-type": "application/json"}
        ) as answer:
            assert answer.status == 413
            assert "10000" in (await answer.json())["error"]["message"]
        assert (await knock(endpoint)).status == 200


async def test_the_health_endpoint_is_public(endpoint: HttpProcess) -> None:
    for path in ("/healthz", "/readyz"):
        async with endpoint.http.get(endpoint.origin + path, headers={"host": "balancer"}) as response:
            assert (response.status, await response.json()) == (200, {"status": "ok"})


async def test_without_the_token_every_request_is_rejected() -> None:
    async with http_process(
        "--token", "c2VjcmV0LXRva2Vu==", "--log-level", "debug", "--log-format", "json"
    ) as endpoint:
        for given in (
            {},
            {"authorization": "Bearer wrong"},
            {"authorization": "Bearer ="},
            {"authorization": "Basic eA=="},
        ):
            response = await knock(endpoint, **given)
            assert response.status == 401
            assert response.headers["www-authenticate"] == "Bearer"
        assert (await knock(endpoint, authorization="bearer c2VjcmV0LXRva2Vu==")).status == 200
        caller = await endpoint.caller(authorization="Bearer c2VjcmV0LXRva2Vu==")
        assert (await caller.value("list_servers"))["servers"] == []
    assert "c2VjcmV0" not in "".join(endpoint.log)


async def test_the_token_can_be_set_in_the_environment() -> None:
    async with http_process(env={"EMCEEPEE_TOKEN": "from-outside"}) as endpoint:
        assert (await knock(endpoint)).status == 401
        assert (await knock(endpoint, authorization="Bearer from-outside")).status == 200


async def test_principals_are_isolated_from_each_other() -> None:
    """Sessions, handles, names, servers, and tasks are private. The operator's servers are shared."""
    demo = {"command": sys.executable, "args": ["-m", "emceepee.demo"], "env": {"PYTHONPATH": ":".join(sys.path)}}
    config = json.dumps({"mcpServers": {"shared": demo}})
    async with http_process(
        *("--token", "ada=one", "--token", "two", "--token", "three", "--allow-commands"),
        env={"EMCEEPEE_CONFIG": config},
    ) as endpoint:
        ada, bob, eve = [await endpoint.caller(authorization=f"Bearer {token}") for token in ("one", "two", "three")]
        await ada.value("add_server", name="own", **demo)
        for other in (bob, eve):
            names = [server["name"] for server in (await other.value("list_servers"))["servers"]]
            assert names == ["shared"]
            assert (await other.error("execute_tool", server="own", tool="add"))["code"] == "TOOL_ERR_SERVER_NOT_FOUND"
            assert (await other.error("remove_server", name="shared"))["code"] == "ERR_NOT_ALLOWED"
        task = (await ada.value("execute_tool", server="own", tool="dig", args={"seconds": 60}, timeout_ms=0))[
            "proxy_task"
        ]
        assert (await bob.error("get_task", task_id=task["task_id"]))["code"] == "ERR_TASK_NOT_FOUND"
        bob.headers["mcp-session-id"] = ada.headers["mcp-session-id"]
        async with bob.post("tools/list") as response:
            assert response.status == 404
        assert await bob.end() == 404
        handle = (await endpoint.modern(authorization="Bearer one").value("open_session"))["session"]
        thief = endpoint.modern(authorization="Bearer two")
        assert (await thief.error("list_tasks", session=handle))["code"] == "TOOL_ERR_SESSION_NOT_FOUND"
        assert (await thief.error("close_session", session=handle))["code"] == "TOOL_ERR_SESSION_NOT_FOUND"
        await endpoint.modern(authorization="Bearer one", emceepee_session="desk").value(
            "set_timer", duration_ms=60_000, message="x"
        )
        timers = await endpoint.modern(authorization="Bearer two", emceepee_session="desk").value("list_timers")
        assert timers["timers"] == []
        assert (await ada.value("list_tasks"))["tasks"][0]["taskId"] == task["task_id"]


async def test_remote_callers_may_not_start_programs_or_reach_private_addresses() -> None:
    """A proxy on this machine forwards remote callers and marks them as remote."""
    command = {"command": sys.executable, "args": ["-m", "emceepee.demo"]}
    async with http_process("--token", "one") as endpoint:
        here = await endpoint.caller(authorization="Bearer one")
        away = await endpoint.caller(authorization="Bearer one", x_forwarded_for="203.0.113.9")
        refused = await away.error("add_server", name="x", **command)
        assert refused["code"] == "ERR_NOT_ALLOWED"
        assert "--allow-commands" in refused["message"]
        for url in (
            "http://127.0.0.1:9/mcp",
            "http://169.254.169.254/mcp",
            "http://localhost:9/mcp",
            "http://" + "a" * 70 + "/",
        ):
            assert (await away.error("add_server", name="x", url=url))["code"] == "ERR_NOT_ALLOWED"
        assert (await here.error("add_server", name="x", url="http://127.0.0.1:9/mcp"))[
            "code"
        ] == "TOOL_ERR_EXECUTION_FAILED"


async def test_with_tokens_configured_callers_may_not_start_programs_but_servers_of_the_operator_start() -> None:
    config = {"mcpServers": {"demo": stdio_server()}}
    async with http_process("--token", "one", env={"EMCEEPEE_CONFIG": json.dumps(config)}) as endpoint:
        here = await endpoint.caller(authorization="Bearer one")
        refused = await here.error("add_server", name="x", **stdio_server())
        assert refused["code"] == "ERR_NOT_ALLOWED"
        assert "--allow-commands" in refused["message"]
        assert len((await here.value("list_tools", server="demo"))["tools"]) > 0


async def test_a_page_of_another_port_may_call_but_neither_start_programs_nor_remove_servers_of_the_operator() -> None:
    config = {"mcpServers": {"demo": stdio_server()}}
    allowed = "http://localhost:6274"
    async with http_process("--allow-origin", allowed, env={"EMCEEPEE_CONFIG": json.dumps(config)}) as endpoint:
        page = await endpoint.caller(origin="http://localhost:3000")
        assert len((await page.value("list_tools", server="demo"))["tools"]) > 0
        for tool, given in (("add_server", {"name": "x", **stdio_server()}), ("remove_server", {"name": "demo"})):
            assert (await page.error(tool, **given))["code"] == "ERR_NOT_ALLOWED"
        for origin in (allowed, endpoint.origin, endpoint.origin.replace("127.0.0.1", "localhost")):
            trusted = await endpoint.caller(origin=origin)
            await trusted.value("add_server", name="x", **stdio_server())
            await trusted.value("remove_server", name="x")


@pytest.mark.parametrize("host", ["x@127.0.0.1", "127.0.0.1/x", "127.0.0.1#", "127.0.0.1:abc"])
async def test_an_ambiguous_host_header_is_rejected(endpoint: HttpProcess, host: str) -> None:
    assert (await knock(endpoint, host=host)).status == 421


async def test_the_operator_can_allow_programs_and_addresses() -> None:
    allowed = ["--allow-commands", "--allow-url", "http://127.0.0.1:*/mcp"]
    async with http_process("--token", "one", *allowed) as endpoint:
        away = await endpoint.caller(authorization="Bearer one", x_forwarded_for="203.0.113.9")
        broken = await away.error("add_server", name="x", command="/nonexistent/program")
        assert broken["code"] == "TOOL_ERR_EXECUTION_FAILED"
        for url, code in {
            "http://127.0.0.1:9/mcp": "TOOL_ERR_EXECUTION_FAILED",
            "http://127.0.0.1:9/other": "ERR_NOT_ALLOWED",
            "http://127.0.0.1:9@evil.example/mcp": "ERR_NOT_ALLOWED",
            "https://127.0.0.1:9/mcp": "ERR_NOT_ALLOWED",
            "http://127.0.0.1.evil.example:9/mcp": "ERR_NOT_ALLOWED",
        }.items():
            assert (await away.error("add_server", name="x", url=url))["code"] == code, url


@pytest.mark.parametrize("kind", ["loopback", "socket"])
async def test_a_listed_server_leads_no_login_to_unlisted_addresses(kind: str, tmp_path: Path) -> None:
    """A remote caller chooses the identity provider: neither a connection nor a status reveals private hosts."""
    connections = 0

    async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        writer.close()

    async with an_authorization_server() as server:
        if kind == "socket":
            listener = await asyncio.start_unix_server(count, tmp_path / "s")
            place = f"unix://{tmp_path}/s:/x"
        else:
            listener = await asyncio.start_server(count, "127.0.0.1", 0)
            place = f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}/x"
        provider = {"token_endpoint": place, "client_id": "me", "id_token": "secret"}
        oauth = {"grant": "enterprise", "client_id": "me", "identity_provider": provider}
        async with listener, http_process("--token", "one", "--allow-url", server.resource) as endpoint:
            away = await endpoint.caller(authorization="Bearer one", x_forwarded_for="203.0.113.9")
            refused = await away.error("add_server", name="x", url=server.resource, oauth=oauth)
            assert "--allow-url" in refused["message"] or "https" in refused["message"]
            assert "HTTP 4" not in refused["message"]
    assert connections == 0


async def test_tokens_of_an_authorization_server_are_verified_with_its_keys() -> None:
    async with an_issuer() as issuer:
        resource = "https://mcp.example/mcp"
        options = ["--oauth-issuer", issuer.url, "--oauth-resource", resource, "--oauth-scope", "mcp"]
        async with http_process(*options, "--log-level", "debug") as endpoint:
            challenge = (await knock(endpoint)).headers["www-authenticate"]
            assert challenge == 'Bearer resource_metadata="https://mcp.example/.well-known/oauth-protected-resource"'
            for path in ("/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"):
                async with endpoint.http.get(endpoint.origin + path) as response:
                    assert await response.json() == {
                        "resource": resource,
                        "authorization_servers": [issuer.url],
                        "scopes_supported": ["mcp"],
                        "bearer_methods_supported": ["header"],
                    }
            good = issuer.token(aud=resource)
            assert (await knock(endpoint, authorization=f"Bearer {good}")).status == 200
            bad: dict[str, dict[str, Any]] = {
                "for another": {"aud": "https://other.example/mcp"},
                "for nobody": {"aud": None},
                "expired": {"aud": resource, "exp": 1_000_000_000},
                "never expires": {"aud": resource, "exp": None},
                "of another issuer": {"aud": resource, "iss": "https://evil.example"},
                "of nobody": {"aud": resource, "sub": None},
                "with a shared secret": {"aud": resource, "algorithm": "HS256", "key": "x" * 40},
                "with an unknown key": {"aud": resource, "kid": "other"},
            }
            for what, claims in bad.items():
                response = await knock(endpoint, authorization=f"Bearer {issuer.token(**claims)}")
                assert response.status == 401, what
                assert 'error="invalid_token"' in response.headers["www-authenticate"]
            unsigned = jwt.encode({"iss": issuer.url, "sub": "ada", "aud": resource}, "", algorithm="none")
            assert (await knock(endpoint, authorization=f"Bearer {unsigned}")).status == 401
            assert (await knock(endpoint, authorization="Bearer rubbish")).status == 401
            narrow = await knock(endpoint, authorization=f"Bearer {issuer.token(aud=resource, scope='other')}")
            assert narrow.status == 403
            assert 'error="insufficient_scope", scope="mcp"' in narrow.headers["www-authenticate"]
            ada = await endpoint.caller(authorization=f"Bearer {good}")
            bob = {"authorization": f"Bearer {issuer.token(aud=resource, sub='bob')}"}
            async with endpoint.http.post(endpoint.url, json=HI, headers=ada.headers | bob) as response:
                assert response.status == 404
        assert good not in "".join(endpoint.log)


async def test_new_signing_keys_are_fetched_and_an_unreachable_issuer_causes_a_503() -> None:
    async with an_issuer() as issuer:
        options = ["--oauth-issuer", issuer.url, "--oauth-resource", "https://mcp.example/mcp"]
        issuer.is_down = True
        async with http_process(*options) as endpoint:
            token = issuer.token(aud="https://mcp.example/mcp")
            assert (await knock(endpoint, authorization=f"Bearer {token}")).status == 503
            issuer.is_down = False

            async def is_let_in(token: str) -> bool:
                return (await knock(endpoint, authorization=f"Bearer {token}")).status == 200

            await eventually(lambda: is_let_in(token), what="the issuer is asked again, once a second at most")
            issuer.rotate()
            newer = issuer.token(aud="https://mcp.example/mcp")
            await eventually(lambda: is_let_in(newer), what="the new key is known, for which the same holds")
            assert issuer.fetches == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--host", "0.0.0.0"], "accepts connections from other machines"),
        (["--oauth-issuer", "http://127.0.0.1:9"], "--oauth-resource"),
        (["--oauth-issuer", "http://login.example", "--oauth-resource", "https://h/mcp"], "must begin with https://"),
        (["--token", ""], "expected a token"),
        (["--token", "name="], None),
    ],
)
async def test_an_endpoint_open_to_strangers_does_not_start(arguments: list[str], words: str | None) -> None:
    if words is None:
        async with http_process(*arguments) as endpoint:
            assert (await knock(endpoint, authorization="Bearer name=")).status == 200
        return
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "emceepee", "serve", "--port", "0", *arguments), stderr=asyncio.subprocess.PIPE
    )
    _, said = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    assert words in said.decode()


async def test_on_a_public_address_host_names_are_accepted_only_with_a_token() -> None:
    async with http_process("--host", "0.0.0.0", "--token", "one") as endpoint:
        assert (await knock(endpoint, host="mcp.lan", authorization="Bearer one")).status == 200
    async with http_process("--host", "0.0.0.0", "--insecure") as endpoint:
        assert (await knock(endpoint, host="192.0.2.7:8080")).status == 200
        assert (await knock(endpoint, host="mcp.lan", origin="http://mcp.lan")).status == 421


async def test_a_port_in_use_is_reported_clearly() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "emceepee", "serve", "--port", port), stderr=asyncio.subprocess.PIPE
        )
        _, said = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 2
    assert said.decode().splitlines()[-1].startswith(f"emceepee: cannot listen on 127.0.0.1:{port}:")
