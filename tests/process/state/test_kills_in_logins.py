"""kill -9 in the middle of a login: nobody is asked again who has agreed."""

import socket
from pathlib import Path

import aiohttp

from support.callers.http_process import HttpCaller, Json, until
from support.callers.restartable_process import restartable_process
from support.system.authorization_server import AuthorizationServer, an_authorization_server


def a_free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


async def begin(caller: HttpCaller, server: AuthorizationServer) -> str:
    added = await caller.value("add_server", name="tracker", url=server.resource)
    assert added["server"]["status"] == "authorizing"
    return str(added["server"]["authorizationUrl"])


async def open_page(http: aiohttp.ClientSession, url: str) -> int:
    async with http.get(url) as page:
        return page.status


async def is_connected(caller: HttpCaller) -> bool:
    (server,) = (await caller.value("list_servers"))["servers"]
    return bool(server["connected"])


async def echo(caller: HttpCaller) -> Json:
    reply = await caller.call("execute_tool", server="tracker", tool="echo", args={})
    while task := (reply.get("structuredContent") or {}).get("proxy_task"):
        reply = await caller.call("get_task_result", task_id=task["task_id"])
    return reply


async def test_a_link_that_was_shown_before_is_good_after(tmp_path: Path) -> None:
    """The browser even comes back before anyone has used the new process."""
    async with (
        an_authorization_server() as server,
        restartable_process(tmp_path, "--port", str(a_free_port())) as endpoint,
    ):
        caller = await endpoint.caller()
        link = await begin(caller, server)
        await endpoint.restart("kill")
        assert await open_page(endpoint.http, link) == 200
        assert (await echo(caller))["content"][0]["text"] == "echo"
        assert (await caller.value("get_elicitations"))["requests"] == []
        assert (len(server.registrations), server.asked) == (1, 1)


async def test_a_code_that_was_not_redeemed_is_redeemed_after(tmp_path: Path) -> None:
    async with (
        an_authorization_server() as server,
        restartable_process(tmp_path, "--port", str(a_free_port())) as endpoint,
    ):
        caller = await endpoint.caller()
        link = await begin(caller, server)
        server.status = 503  # of what is asked now, and answered when nobody listens any more
        server.held.set()
        assert await open_page(endpoint.http, link) == 200
        await until(lambda: len(server.forms) == 1, "the code is being redeemed")
        await endpoint.kill()
        server.held.clear()
        server.go_on.set()
        await until(lambda: server.answered == 1, "that is over")
        server.status = 200
        await endpoint.start()
        assert (await echo(caller))["content"][0]["text"] == "echo"
        assert await is_connected(caller)
        assert (len(server.registrations), server.asked) == (1, 1)


async def test_nobody_logs_in_again_after_a_restart(tmp_path: Path) -> None:
    async with (
        an_authorization_server() as server,
        restartable_process(tmp_path, "--port", str(a_free_port())) as endpoint,
    ):
        caller = await endpoint.caller()
        assert await open_page(endpoint.http, await begin(caller, server)) == 200
        await echo(caller)
        await endpoint.restart("kill")
        assert (await echo(caller))["content"][0]["text"] == "echo"
        assert server.asked == 1
        assert len({token for token, _ in server.calls}) == 1
