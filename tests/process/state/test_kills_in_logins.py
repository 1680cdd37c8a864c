"""kill -9 during a login, a code exchange, or a refresh: no person has to log in again without need."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest

from support.callers.http_process import HttpCaller, Json, until
from support.callers.replicas import TOKEN, restartable_replicas
from support.callers.restartable_process import RestartableProcess, restartable_process
from support.figures import record_figure
from support.sessions.asking import task_id
from support.system.authorization_server import AuthorizationServer
from support.system.ports import free_port
from support.system.redis_server import RedisServer

SOON = {"sqlite": 10.0, "redis": 20.0}  # after Redis, the lease of the dead has to lapse; a lock's time is a minute


@pytest.fixture
async def endpoint(tmp_path: Path) -> AsyncIterator[RestartableProcess]:
    """A browser also returns to its port after a restart."""
    async with restartable_process(tmp_path, "--port", str(free_port())) as running:
        yield running


async def begin(caller: HttpCaller, server: AuthorizationServer, **oauth: object) -> str:
    settings = {"oauth": oauth} if oauth else {}
    added = await caller.value("add_server", name="tracker", url=server.resource, **settings)
    assert added["server"]["status"] == "authorizing"
    return str(added["server"]["authorizationUrl"])


async def open_page(http: aiohttp.ClientSession, url: str) -> int:
    async with http.get(url) as page:
        return page.status


async def log_in(caller: HttpCaller, server: AuthorizationServer) -> None:
    assert await open_page(caller.endpoint.http, await begin(caller, server)) == 200
    assert text(await echo(caller)) == "echo"


async def links(caller: HttpCaller) -> list[str]:
    """Return the link that the person has to open now."""
    return [str(each["url"]) for each in (await caller.value("get_elicitations"))["requests"]]


async def is_asked(caller: HttpCaller) -> bool:
    return bool(await links(caller))


async def is_connected(caller: HttpCaller) -> bool:
    (server,) = (await caller.value("list_servers"))["servers"]
    return bool(server["connected"])


async def echo(caller: HttpCaller) -> Json:
    reply = await caller.call("execute_tool", server="tracker", tool="echo", args={})
    while task := (reply.get("structuredContent") or {}).get("proxy_task"):
        reply = await caller.call("get_task_result", task_id=task["task_id"])
    return reply


def text(reply: Json) -> str:
    return str(reply["content"][0]["text"])


@asynccontextmanager
async def token_request(caller: HttpCaller, server: AuthorizationServer, *, is_done: bool) -> AsyncIterator[None]:
    """It is under way when the body begins, and answered when nobody listens any more."""
    before = len(server.forms)
    event = server.held_back if is_done else server.held
    event.set()
    call = asyncio.ensure_future(caller.call("execute_tool", server="tracker", tool="echo", args={}))
    try:
        await until(lambda: len(server.forms) == before + 1, "a token is asked for")
        yield
        event.clear()
        server.go_on.set()
        await until(lambda: server.answered > before, "that is over")
    finally:
        call.cancel()
        await asyncio.wait({call})


# Of a login.


async def test_a_login_link_from_before_a_kill_remains_valid(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    """The browser returns even before a caller has used the new process."""
    caller = await endpoint.caller()
    link = await begin(caller, server)
    await endpoint.restart("kill")
    assert await open_page(endpoint.http, link) == 202
    assert text(await echo(caller)) == "echo"
    assert await links(caller) == []
    assert (len(server.registrations), server.asked) == (1, 1)


async def test_the_same_login_link_is_shown_after_a_kill_and_the_final_browser_address_can_be_pasted(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    link = await begin(caller, server)
    async with endpoint.http.get(link, allow_redirects=False) as page:
        ended = page.headers["location"]
    await endpoint.restart("kill")
    await caller.call("execute_tool", server="tracker", tool="echo", args={}, timeout_ms=0)
    await until(lambda: is_asked(caller), "it is asked again")
    assert await links(caller) == [link]
    (listed,) = (await caller.value("list_servers"))["servers"]
    assert (listed["status"], listed["authorizationUrl"]) == ("authorizing", link)
    done = await caller.value("finish_authorization", server="tracker", redirect_url=ended)
    assert done["server"]["status"] == "connected"
    assert (len(server.registrations), server.asked) == (1, 1)


async def test_a_device_code_from_before_a_kill_remains_valid(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    await begin(caller, server, grant="device_code")
    await endpoint.kill()
    server.is_approved = True
    await endpoint.start()
    assert text(await echo(caller)) == "echo"
    assert len({form.fields["device_code"] for form in server.forms}) == 1


async def test_a_waiting_call_is_sent_once_despite_repeated_kills_before_the_login(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    link = await begin(caller, server)
    promotion = await caller.call("execute_tool", server="tracker", tool="echo", args={})
    for _ in range(2):
        await endpoint.restart("kill")
        await until(lambda: is_asked(caller), "it is asked again")
        (task,) = (await caller.value("list_tasks"))["tasks"]
        assert (task["taskId"], task["status"]) == (task_id(promotion), "working")
    assert await open_page(endpoint.http, link) == 200
    assert text(await caller.call("get_task_result", task_id=task_id(promotion))) == "echo"
    assert (len(server.calls), server.asked) == (1, 1)


async def test_a_call_that_was_sent_after_a_login_is_not_sent_again(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    link = await begin(caller, server)
    promotion = await caller.call("execute_tool", server="tracker", tool="echo", args={})
    server.holds_calls = True
    assert await open_page(endpoint.http, link) == 200
    await until(lambda: len(server.calls) == 1, "it ran")
    await endpoint.kill()
    server.holds_calls = False
    await endpoint.start()
    reply = await caller.call("get_task_result", task_id=task_id(promotion))
    assert reply["structuredContent"]["error"]["details"]["mayHaveRun"] is True
    assert len(server.calls) == 1


# Of a code's exchange.


async def test_an_unredeemed_code_is_redeemed_after_a_kill(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    link = await begin(caller, server)
    server.status = 503
    server.held.set()
    page = asyncio.ensure_future(open_page(endpoint.http, link))
    await until(lambda: len(server.forms) == 1, "the code is being redeemed")
    await endpoint.kill()
    with pytest.raises(aiohttp.ClientError):
        await page
    server.held.clear()
    server.go_on.set()
    await until(lambda: server.answered == 1, "that is over")
    server.status = 200
    await endpoint.start()
    assert text(await echo(caller)) == "echo"
    assert await is_connected(caller)
    assert (len(server.registrations), server.asked) == (1, 1)


async def test_a_code_whose_redemption_a_kill_interrupted_requires_one_more_login(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    link = await begin(caller, server)
    server.held_back.set()
    page = asyncio.ensure_future(open_page(endpoint.http, link))
    await until(lambda: len(server.forms) == 1, "the code is being redeemed")
    await endpoint.kill()
    with pytest.raises(aiohttp.ClientError):
        await page
    server.held_back.clear()
    server.go_on.set()
    await endpoint.start()
    waiting = asyncio.ensure_future(echo(caller))
    await until(lambda: is_asked(caller), "there is no other way")
    (again,) = await links(caller)
    assert again != link
    assert await open_page(endpoint.http, again) == 200
    assert text(await waiting) == "echo"
    assert await links(caller) == []
    assert (len(server.registrations), server.asked) == (1, 2)


# Of a refresh.


async def test_a_login_survives_a_restart(server: AuthorizationServer, endpoint: RestartableProcess) -> None:
    caller = await endpoint.caller()
    await log_in(caller, server)
    await endpoint.restart("kill")
    assert text(await echo(caller)) == "echo"
    assert server.asked == 1
    assert len({token for token, _ in server.calls}) == 1


async def test_a_token_refresh_that_was_never_received_is_repeated_after_a_kill(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    await log_in(caller, server)
    server.valid.clear()
    server.status = 503
    async with token_request(caller, server, is_done=False):
        await endpoint.kill()
    server.status = 200
    await endpoint.start()
    async with asyncio.timeout(SOON["sqlite"]):
        assert text(await echo(caller)) == "echo"
    assert (server.asked, server.replayed) == (1, 0)


async def test_a_token_refresh_whose_answer_a_kill_lost_requires_one_login(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    """The authorization server has replaced the old token, and the new one is lost."""
    caller = await endpoint.caller()
    await log_in(caller, server)
    server.valid.clear()
    async with token_request(caller, server, is_done=True):
        await endpoint.kill()
    await endpoint.start()
    waiting = [asyncio.ensure_future(echo(caller)) for _ in range(3)]
    async with asyncio.timeout(SOON["sqlite"]):
        await until(lambda: is_asked(caller), "there is no other way")
    (link,) = await links(caller)
    assert await open_page(endpoint.http, link) == 200
    assert [text(await each) for each in waiting] == ["echo"] * 3
    assert await links(caller) == []
    assert (server.asked, server.replayed) == (2, 1)


@pytest.mark.parametrize("kind", ["sqlite", "redis"])
async def test_a_process_that_dies_in_a_token_refresh_delays_the_others_by_less_than_a_minute(
    kind: str, server: AuthorizationServer, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    redis: RedisServer | None = request.getfixturevalue("redis") if kind == "redis" else None
    state = f"sqlite:{tmp_path / 'state.db'}" if redis is None else redis.url()
    async with restartable_replicas(tmp_path, 2, "--state", state, env={}) as (dying, living):
        caller = await dying.caller(authorization=f"Bearer {TOKEN}")
        other = await living.caller(authorization=f"Bearer {TOKEN}")
        await log_in(caller, server)
        await until(lambda: is_there(other), "the other has heard of it")
        assert text(await echo(other)) == "echo"
        server.valid.clear()
        server.status = 503
        async with token_request(caller, server, is_done=False):
            server.status, refusals = 200, server.refusals
            waiting = asyncio.ensure_future(echo(other))
            await until(lambda: server.refusals > refusals, "the other wants to refresh as well")
            await dying.kill()
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with asyncio.timeout(SOON[kind]):
            assert text(await waiting) == "echo"
        record_figure(f"a refresh after another process died in one, on {kind}: {loop.time() - began:.1f} s")
    assert (server.asked, server.replayed) == (1, 0)


async def is_there(caller: HttpCaller) -> bool:
    return bool((await caller.value("list_servers"))["servers"])
