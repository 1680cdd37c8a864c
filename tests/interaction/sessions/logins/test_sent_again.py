"""A call that a server rejected with 401 is resent once per new token. No other call is resent."""

import json
from collections.abc import Callable

import aiohttp
import pytest
from aiohttp import web

from emceepee.backends.oauth.metadata.scopes import LOGINS_PER_CALL
from emceepee.backends.oauth.token_access import MOST_ATTEMPTS
from emceepee.wire.json_types import JsonObject
from support.sessions.asking import task_id
from support.sessions.scene import Scene
from support.system.authorization_server import AuthorizationServer
from support.waiting import eventually

Answer = Callable[[AuthorizationServer], web.Response]


@pytest.fixture
async def scene(scene: Scene, server: AuthorizationServer) -> Scene:
    """The session after the login."""
    oauth = {"scopes": "some"}
    added = await scene.value("add_server", name="tracker", url=server.resource, oauth=oauth)
    await agree(added["server"]["authorizationUrl"])
    await eventually(lambda: scene.status("tracker") == "connected")
    return scene


async def agree(url: str) -> None:
    async with aiohttp.ClientSession() as browser, browser.get(url) as page:
        assert page.status == 200


async def call(scene: Scene) -> JsonObject:
    return await scene.call("execute_tool", server="tracker", tool="echo", arguments={})


def refreshes(server: AuthorizationServer) -> int:
    return sum(form.fields["grant_type"] == "refresh_token" for form in server.forms)


def challenge(status: int, words: str = "") -> Answer:
    return lambda server: server.not_let_in(status, words)


def plain(status: int, body: object = None, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _: web.Response(status=status, text=json.dumps(body or {}), headers=named)


ERROR = {"jsonrpc": "2.0", "id": 0, "error": {"code": -32001, "message": "unauthorized"}}


@pytest.mark.parametrize(
    "answer",
    [
        challenge(403),
        challenge(403, ', error="access_denied"'),
        challenge(403, ', error="insufficient_scope"'),  # which one is not said, so no other token would do
        challenge(403, ', error="insufficient_scope", scope="some"'),  # that was asked for before
        plain(400),
        plain(400, ERROR),
        plain(403),
        plain(403, ERROR),
        plain(409),
        plain(425),
        plain(429, retry_after="0"),
        plain(500),
        plain(502),
        plain(503, retry_after="0"),
        plain(504),
    ],
)
async def test_a_call_is_not_resent_without_a_new_token(
    answer: Answer, scene: Scene, server: AuthorizationServer
) -> None:
    server.verdict = lambda _: answer(server)
    reply = await call(scene)
    assert reply["isError"]
    assert len(server.arrived) == 1
    assert (refreshes(server), server.asked) == (0, 1)


async def test_a_401_causes_one_token_refresh_and_one_retry_of_the_call(
    scene: Scene, server: AuthorizationServer
) -> None:
    server.valid.clear()
    assert (await call(scene))["content"][0]["text"] == "echo"
    assert len(server.arrived) == len(set(server.arrived)) == 2
    assert (refreshes(server), len(server.calls), server.asked) == (1, 1, 1)


async def test_a_server_that_refuses_every_token_receives_each_token_once(
    scene: Scene, server: AuthorizationServer
) -> None:
    server.verdict = lambda _: server.not_let_in(401, "")
    reply = await call(scene)
    assert reply["isError"]
    assert len(server.arrived) == len(set(server.arrived)) == MOST_ATTEMPTS
    assert (refreshes(server), server.asked) == (MOST_ATTEMPTS - 1, 1)


async def test_a_401_without_a_new_token_causes_no_retry(scene: Scene, server: AuthorizationServer) -> None:
    server.valid.clear()
    server.status = 503
    reply = await call(scene)
    assert "call again in a while" in reply["structuredContent"]["error"]["message"]
    assert (len(server.arrived), server.asked) == (1, 1)


async def test_a_step_up_login_resends_the_call_once_with_the_new_token(
    scene: Scene, server: AuthorizationServer
) -> None:
    server.needed["echo"] = "all"
    task = task_id(await call(scene))
    (question,) = (await scene.value("get_elicitations"))["requests"]
    await agree(question["url"])
    result = await scene.call("get_task_result", task_id=task)
    assert result["content"][0]["text"] == "echo"
    assert len(server.arrived) == len(set(server.arrived)) == 2
    assert len(server.calls) == 1


async def test_a_server_that_demands_ever_more_scopes_does_not_cause_endless_logins(
    scene: Scene, server: AuthorizationServer
) -> None:
    def wants_another(token: str) -> web.Response:
        return server.not_let_in(403, f', error="insufficient_scope", scope="scope-{len(server.arrived)}"')

    server.verdict = wants_another
    reply = await call(scene)
    while task := (reply.get("structuredContent") or {}).get("proxy_task"):
        task_key = task["task_id"]
        for question in (await scene.value("get_elicitations"))["requests"]:
            await agree(question["url"])
        reply = await scene.call("get_task_result", task_id=task_key, timeout_ms=500)
        if (reply.get("structuredContent") or {}).get("error", {}).get("code") == "TOOL_ERR_TIMEOUT":
            reply = {"structuredContent": {"proxy_task": task}}
    assert reply["isError"]
    assert len(server.arrived) == len(set(server.arrived)) == server.asked
    assert server.asked == 1 + LOGINS_PER_CALL
    assert server.calls == []


async def test_a_call_on_a_broken_connection_is_not_resent(scene: Scene, server: AuthorizationServer) -> None:
    """The call may have run."""

    class Cut(web.Response):
        async def prepare(self, request: web.BaseRequest) -> None:
            assert request.transport is not None
            request.transport.abort()

    server.verdict = lambda _: Cut()
    reply = await call(scene)
    assert reply["isError"]
    assert len(server.arrived) == 1
