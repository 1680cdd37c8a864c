"""`emceepee auth`: its list, its errors, and its token storage."""

import asyncio
import json
from pathlib import Path

import aiohttp
import pytest

from support.callers.auth_command import AuthCommand
from support.callers.http_process import http_process
from support.fakes.keyrings import FILE_VARIABLE
from support.server_programs.stdio_entries import stdio_server
from support.system.authorization_server import AuthorizationServer

TESTS = Path(__file__).parents[1]


@pytest.fixture
def auth(server: AuthorizationServer, tmp_path: Path) -> AuthCommand:
    config = tmp_path / "servers.json"
    servers = [{"name": "tracker", "url": server.resource}, {"name": "files", **stdio_server()}]
    config.write_text(json.dumps({"servers": servers}), encoding="utf-8")
    return AuthCommand(state=tmp_path / "state", config=config)


def with_keyring(auth: AuthCommand, tmp_path: Path) -> AuthCommand:
    env = (
        ("PYTHON_KEYRING_BACKEND", "support.fakes.keyrings.FileKeyring"),
        ("PYTHONPATH", str(TESTS)),
        (FILE_VARIABLE, str(tmp_path / "keyring.json")),
    )
    return AuthCommand(state=auth.state, config=auth.config, flags=("--secrets", "keyring"), env=env)


async def log_in(auth: AuthCommand, *words: str) -> dict[str, object]:
    """The browser is on this machine, and returns by itself. Return the last output."""
    process = await auth.start("login", "tracker", "--json", *words)
    assert process.stdout is not None
    async with asyncio.timeout(60):
        asked = json.loads(await process.stdout.readline())
        assert asked["state"] == "authorizing"
        async with aiohttp.ClientSession() as browser, browser.get(asked["authorizationUrl"]) as page:
            assert page.status == 200
        said = json.loads(await process.stdout.readline())
        assert await process.wait() == 0
    return dict(said)


async def test_the_auth_command_logs_in_lists_and_logs_out_without_showing_a_token(
    auth: AuthCommand, server: AuthorizationServer
) -> None:
    said = await log_in(auth)
    assert (said["state"], said["issuer"]) == ("logged_in", server.url)
    listed = await auth.facts("list")
    assert [(each["server"], each["state"]) for each in listed["servers"]] == [
        ("tracker", "logged_in"),
        ("files", "no_login"),
    ]
    code, text, _ = await auth.run("list")
    assert code == 0
    assert server.url in text
    code, status, _ = await auth.run("status", "tracker")
    assert "is renewed" in status
    again = await auth.facts("login", "tracker")
    assert (again["state"], server.asked) == ("logged_in", 1)
    assert (await auth.facts("logout", "tracker", "--yes"))["revoked"] is True
    assert len(server.revoked) == 2
    assert not [secret for secret in server.secrets if secret in f"{said}{listed}{text}{status}{again}"]


async def test_each_principal_has_separate_logins_and_serve_uses_them(
    auth: AuthCommand, server: AuthorizationServer
) -> None:
    await log_in(auth, "--principal", "anna")
    assert (await auth.facts("status", "tracker"))["state"] == "logged_out"
    tokens = ("--token", "anna=token-of-anna-0123", "--token", "ben=token-of-ben-01234")
    async with http_process("--config", str(auth.config), *tokens, state=auth.state) as endpoint:
        anna = await endpoint.caller(authorization="Bearer token-of-anna-0123")
        ben = await endpoint.caller(authorization="Bearer token-of-ben-01234")
        reply = await anna.call("execute_tool", server="tracker", tool="echo", args={})
        assert reply["content"][0]["text"] == "echo"
        reply = await ben.call("execute_tool", server="tracker", tool="echo", args={})
        assert "proxy_task" in reply["structuredContent"]  # he is asked to log in
    assert len(server.calls) == 1


async def test_tokens_are_stored_in_the_keyring_on_request(
    auth: AuthCommand, server: AuthorizationServer, tmp_path: Path
) -> None:
    auth = with_keyring(auth, tmp_path)
    await log_in(auth)
    ring = tmp_path / "keyring.json"
    assert json.loads(ring.read_text(encoding="utf-8"))
    flags = ("--config", str(auth.config), "--secrets", "keyring")
    async with http_process(*flags, state=auth.state, env=dict(auth.env)) as endpoint:
        caller = await endpoint.caller()
        reply = await caller.call("execute_tool", server="tracker", tool="echo", args={})
        assert reply["content"][0]["text"] == "echo"
    await auth.facts("logout", "tracker", "--yes")
    left = json.loads(ring.read_text(encoding="utf-8"))
    assert not [name for name in left if '"tokens"' in name or '"login"' in name]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("status", "trackr"), "Did you mean tracker?"),
        (("login", "files"), "does not log in to files"),
        (("list", "--state", "memory"), "--state sqlite"),
        (("list", "--state", "redis://127.0.0.1:1", "--secrets", "keyring"), "EMCEEPEE_STATE_KEY"),
        (("list", "--config", "/nowhere.json"), "no such file"),
    ],
)
async def test_an_invalid_auth_request_is_reported_with_the_next_step(
    auth: AuthCommand, words: tuple[str, ...], expected: str
) -> None:
    if "--config" in words:
        auth = AuthCommand(state=auth.state)
    code, out, err = await auth.run(*words)
    assert (code, out) == (2, "")
    assert expected in err


async def test_without_a_keyring_the_keyring_login_does_not_start(auth: AuthCommand) -> None:
    env = (("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring"),)
    auth = AuthCommand(state=auth.state, config=auth.config, flags=("--secrets", "keyring"), env=env)
    code, _, err = await auth.run("list")
    assert code == 2
    assert "no usable keyring" in err


async def test_a_failed_login_exits_with_code_one(auth: AuthCommand, server: AuthorizationServer) -> None:
    server.status = 503
    async with auth.at_terminal("login", "tracker") as terminal:
        async with aiohttp.ClientSession() as browser, browser.get(await terminal.line("http")) as page:
            assert "not logged in to tracker" in await page.text()
        assert await terminal.end() == 1
    assert "not logged in to tracker" in terminal.shown


@pytest.mark.parametrize("callback", ["http://10.0.0.7:8080/oauth/callback", "http://box.example/x", "file:///x"])
async def test_login_codes_are_not_returned_to_an_address_without_tls(auth: AuthCommand, callback: str) -> None:
    process = await auth.start("login", "tracker", "--callback", callback)
    async with asyncio.timeout(60):
        _, shown = await process.communicate()
    assert process.returncode == 2
    assert b"--callback must begin with https://" in shown
