"""Logins as over SSH: a terminal here, a browser elsewhere, and a third-party authorization server."""

import asyncio
import json
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import aiohttp
import pytest

from support.callers.auth_command import AuthCommand, Terminal
from support.callers.http_process import HttpCaller, http_process, until
from support.system.oidc_provider import BrowserElsewhere, ProtectedServer, oidc_provider

LONG = 6000  # characters: more than a terminal takes in a line that can be edited


@pytest.fixture
async def server() -> AsyncIterator[ProtectedServer]:
    async with oidc_provider() as running:
        yield running


@pytest.fixture
def browser(server: ProtectedServer) -> BrowserElsewhere:
    return BrowserElsewhere(server.issuer)


@pytest.fixture
def auth(server: ProtectedServer, tmp_path: Path) -> AuthCommand:
    config = tmp_path / "servers.json"
    config.write_text(json.dumps({"servers": [{"name": "notes", "url": server.url}]}), encoding="utf-8")
    return AuthCommand(state=tmp_path / "state", config=config)


async def read_note(caller: HttpCaller) -> str:
    """However long it takes."""
    reply = await caller.call("execute_tool", server="notes", tool="read", args={})
    if "proxy_task" in reply.get("structuredContent", {}):
        task = reply["structuredContent"]["proxy_task"]["task_id"]
        reply = await caller.call("get_task_result", task_id=task)
    return str(reply["content"][0]["text"])


async def status(caller: HttpCaller) -> str:
    (listed,) = (await caller.value("list_servers"))["servers"]
    return str(listed["status"])


async def test_a_login_over_ssh_finishes_through_the_tools_by_pasting_the_address(
    server: ProtectedServer, browser: BrowserElsewhere
) -> None:
    async with http_process() as endpoint:
        caller = await endpoint.caller()
        added = (await caller.value("add_server", name="notes", url=server.url))["server"]
        assert added["status"] == "authorizing"
        ended = await browser.visit(added["authorizationUrl"])
        assert ended.startswith("http://127.0.0.1:")
        done = await caller.value("finish_authorization", server="notes", redirect_url=ended)
        assert done["server"]["status"] == "connected"
        assert await read_note(caller) == "a note"
    assert server.subjects == {"ann"}


async def test_a_login_over_ssh_finishes_through_the_tools_by_device_code(
    server: ProtectedServer, browser: BrowserElsewhere
) -> None:
    async with http_process() as endpoint:
        caller = await endpoint.caller()
        added = await caller.value("add_server", name="notes", url=server.url, oauth={"grant": "device_code"})
        assert added["server"]["status"] == "authorizing"
        (question,) = (await caller.value("get_elicitations"))["requests"]
        code = question["message"].partition("Enter the code ")[2].split()[0]
        reading = asyncio.create_task(read_note(caller))
        address = question["url"].partition("?")[0]  # entered by hand
        assert "success" in (await browser.visit(address, user_code=code)).lower()
        assert await reading == "a note"
    assert server.calls == ["read"]


async def test_each_rotating_refresh_token_is_used_once(tmp_path: Path) -> None:
    async with oidc_provider(lives=1) as server, http_process(state=tmp_path) as endpoint:
        caller = await endpoint.caller()
        added = (await caller.value("add_server", name="notes", url=server.url))["server"]
        ended = await BrowserElsewhere(server.issuer).visit(added["authorizationUrl"])
        await caller.value("finish_authorization", server="notes", redirect_url=ended)

        async def has_renewed() -> bool:
            assert await read_note(caller) == "a note"
            return len(server.tokens) >= 3

        await until(has_renewed, "the token was renewed twice")
        assert (await caller.value("get_elicitations"))["requests"] == []


async def finish(terminal: Terminal) -> None:
    assert await terminal.end() == 0, terminal.shown
    assert "Logged in to notes at http://127.0.0.1:" in terminal.shown


async def test_a_login_at_a_terminal_by_pasting_the_address_works_for_a_later_serve(
    auth: AuthCommand, server: ProtectedServer, browser: BrowserElsewhere
) -> None:
    async with auth.at_terminal("login", "notes") as terminal:
        ended = await browser.visit(await terminal.line("http"))
        terminal.type("http://127.0.0.1/?state=of-another&code=x\n")
        await terminal.until("Paste the whole address")
        longer = ended.replace("?", f"?padding={'x' * LONG}&")
        pasting = asyncio.create_task(asyncio.to_thread(terminal.type, f"{longer}\n"))
        await finish(terminal)
        await pasting
    held = await auth.facts("status", "notes")
    assert {key: held[key] for key in ("state", "issuer", "scopes", "renewable")} == {
        "state": "logged_in",
        "issuer": server.issuer,
        "scopes": ["notes:read"],
        "renewable": True,
    }
    async with http_process("--config", str(auth.config), state=auth.state) as endpoint:
        caller = await endpoint.caller()
        assert await read_note(caller) == "a note"
        assert await status(caller) == "connected"
    assert server.subjects == {"ann"}


async def test_a_login_at_a_terminal_by_device_code_works_for_a_running_serve(
    auth: AuthCommand, server: ProtectedServer, browser: BrowserElsewhere
) -> None:
    async with http_process("--config", str(auth.config), state=auth.state) as endpoint:
        caller = await endpoint.caller()
        reading = asyncio.create_task(read_note(caller))

        async def is_waiting() -> bool:
            return await status(caller) == "authorizing"

        await until(is_waiting, "the call waits for a login")
        async with auth.at_terminal("login", "notes", "--device") as terminal:
            address = await terminal.line("http")
            assert "it is " in await terminal.until("it is ")
            assert "success" in (await browser.visit(address)).lower()
            await finish(terminal)
        assert await reading == "a note"
        assert (await caller.value("get_elicitations"))["requests"] == []


async def test_a_login_at_a_terminal_replaces_a_declined_one(
    auth: AuthCommand, server: ProtectedServer, browser: BrowserElsewhere
) -> None:
    async with http_process("--config", str(auth.config), state=auth.state) as endpoint:
        caller = await endpoint.caller()
        await caller.call("execute_tool", server="notes", tool="read", args={})
        (question,) = (await caller.value("get_elicitations"))["requests"]
        await caller.value("respond_to_elicitation", request_id=question["requestId"], action="decline")

        async def has_status(expected: str) -> bool:
            return await status(caller) == expected

        await until(partial(has_status, "error"), "the login has failed")
        async with auth.at_terminal("login", "notes") as terminal:
            terminal.type(await browser.visit(await terminal.line("http")) + "\n")
            await finish(terminal)
        await until(partial(has_status, "connected"), "the other login is used")
        assert await read_note(caller) == "a note"


async def test_a_browser_on_the_same_machine_returns_automatically(
    auth: AuthCommand, server: ProtectedServer, browser: BrowserElsewhere
) -> None:
    async with auth.at_terminal("login", "notes") as terminal:
        ended = await browser.visit(await terminal.line("http"))
        async with aiohttp.ClientSession() as http, http.get(ended) as page:
            assert "Logged in" in await page.text()
        await finish(terminal)


async def test_a_canceled_login_at_a_terminal_leaves_nothing_behind(auth: AuthCommand) -> None:
    async with auth.at_terminal("login", "notes") as terminal:
        await terminal.until("press Enter")
        terminal.type("\x03")
        assert await terminal.end() == 1
        assert "was cancelled" in terminal.shown
        assert "Traceback" not in terminal.shown
    assert (await auth.facts("status", "notes"))["state"] == "logged_out"


async def test_a_logout_revokes_tokens_and_a_running_serve_notices(
    auth: AuthCommand, server: ProtectedServer, browser: BrowserElsewhere
) -> None:
    async with auth.at_terminal("login", "notes") as terminal:
        terminal.type(await browser.visit(await terminal.line("http")) + "\n")
        await finish(terminal)
    async with http_process("--config", str(auth.config), state=auth.state) as endpoint:
        caller = await endpoint.caller()
        assert await read_note(caller) == "a note"
        code, _, err = await auth.run("logout", "notes")
        assert (code, "--yes" in err) == (2, True)
        assert await auth.facts("logout", "notes", "--yes") == {
            "server": "notes",
            "wasLoggedIn": True,
            "revoked": True,
        }
        assert (await auth.facts("status", "notes"))["state"] == "logged_out"

        async def wants_a_login() -> bool:
            reply = await caller.call("execute_tool", server="notes", tool="read", args={})
            return "proxy_task" in reply.get("structuredContent", {})

        await until(wants_a_login, "the token, which the server would still take, is not used any more")
