"""`emceepee --console`: the page beside a caller on standard input does not affect that caller."""

import asyncio
import json
import socket
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from support.callers.emceepee_process import BOUND, EmceepeeProcess, emceepee
from support.callers.http_process import HELLO
from support.console.http_browser import Browser, browser_for, links, the_link
from support.system.ports import free_port
from support.waiting import eventually


class Watched:
    """A running emceepee whose standard error is read along."""

    def __init__(self, caller: EmceepeeProcess, http: aiohttp.ClientSession) -> None:
        self.caller, self.http = caller, http
        self.log: list[str] = []

    async def read(self) -> None:
        assert self.caller.process.stderr is not None
        while line := await self.caller.process.stderr.readline():
            self.log.append(line.decode())

    async def browser(self) -> Browser:
        return browser_for(self.http, await the_link(self.log))


@asynccontextmanager
async def watched(*arguments: str, port: int = 0, env: dict[str, str] | None = None) -> AsyncIterator[Watched]:
    async with (
        aiohttp.ClientSession() as http,
        emceepee("--console", str(port), *arguments, stderr=asyncio.subprocess.PIPE, env=env) as caller,
    ):
        made = Watched(caller, http)
        reading = asyncio.create_task(made.read())
        try:
            yield made
        finally:
            if caller.process.returncode is None:
                caller.process.terminate()
            await asyncio.wait_for(reading, BOUND)
    assert caller.stdout_garbage == []
    assert not [line for line in made.log if "Traceback" in line or " error " in line], "".join(made.log)


async def test_the_console_opens_after_the_first_answer_and_its_link_works_once() -> None:
    async with watched() as place:
        await place.caller.initialize()
        link = await the_link(place.log)
        assert link.startswith("http://127.0.0.1:")
        first, second = await place.browser(), await place.browser()
        await first.log_in(link)
        assert (await first.open("/")).status == 200
        assert (await second.open(link)).status == 403
        await second.log_in(await the_link(place.log, 2))
        assert await place.caller.value("list_servers") == {"servers": []}
        assert await place.caller.end() == 0


async def test_no_port_is_open_before_the_caller_was_answered() -> None:
    port = free_port()
    async with watched(port=port) as place:
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", port)
        assert links(place.log) == []
        await place.caller.initialize("2026-07-28")
        assert await the_link(place.log)


async def test_local_programs_need_a_login_to_call_the_endpoint_beside_a_caller_on_stdin() -> None:
    """The user opened no port. A token in the environment belongs to another endpoint."""
    async with watched(env={"EMCEEPEE_TOKEN": "sesame"}) as place:
        await place.caller.initialize()
        browser = await place.browser()
        hello = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}
        for headers in ({}, {"authorization": "Bearer sesame"}, {"origin": browser.origin}):
            async with place.http.post(browser.origin + "/mcp", json=hello, headers=headers) as response:
                assert response.status == 401
        assert "takes no tokens" in (await browser.log_in_with("sesame")).text
        await browser.log_in(await the_link(place.log))
        assert (await browser.initialize()).status == 200


async def test_the_console_page_shares_the_servers_of_the_caller_on_stdin() -> None:
    demo = {"command": sys.executable, "args": ["-m", "emceepee.demo"], "env": {"PYTHONPATH": ":".join(sys.path)}}
    async with watched() as place:
        await place.caller.initialize()
        browser = await place.browser()
        await browser.log_in(await the_link(place.log))
        session = (await browser.initialize()).headers["mcp-session-id"]
        await place.caller.value("add_server", name="demo", **demo)
        headers = {"mcp-session-id": session, "accept": "application/json, text/event-stream"}
        call = {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "list_servers", "arguments": {}}}
        seen = await browser.fetch("POST", "/mcp", json=call, headers=headers)
        assert json.loads(seen.text)["result"]["structuredContent"]["servers"][0]["name"] == "demo"
        assert await place.caller.end() == 0


async def test_a_port_in_use_causes_a_warning_and_the_caller_is_served() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        async with watched(port=taken.getsockname()[1]) as place:
            await place.caller.initialize()
            await eventually(
                lambda: any("warn  console_not_opened" in line for line in place.log), what="the log reports it"
            )
            assert await place.caller.value("list_servers") == {"servers": []}
            assert await place.caller.end() == 0


@pytest.mark.parametrize("end", ["input", "signal"])
async def test_an_open_console_page_does_not_delay_the_end_of_emceepee_on_stdin(end: str) -> None:
    async with watched() as place:
        await place.caller.initialize()
        browser = await place.browser()
        await browser.log_in(await the_link(place.log))
        stream = await browser.pushes((await browser.initialize()).headers["mcp-session-id"])
        began = time.monotonic()
        if end == "input":
            assert await place.caller.end() == 0
        else:
            place.caller.process.terminate()
            assert await asyncio.wait_for(place.caller.process.wait(), BOUND) == 0
        assert time.monotonic() - began < 5
        assert await stream.rest() == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--console", "70000"), "expected a port number, found '70000'"),
        (("--console", "x"), "expected a port number, found 'x'"),
        (("serve", "--port", "70000"), "expected a port number, found '70000'"),
        (("serve", "--port", "-1"), "expected a port number, found '-1'"),
        (("--console", "0", "serve"), "serve has the console at its own port"),
    ],
)
async def test_an_invalid_console_port_is_reported_clearly(arguments: tuple[str, ...], said: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "emceepee", *arguments), stderr=asyncio.subprocess.PIPE
    )
    _, heard = await asyncio.wait_for(process.communicate(), BOUND)
    assert process.returncode == 2
    assert said in heard.decode()
