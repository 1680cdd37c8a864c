"""Scripts that wait for a login: real processes and the redirect of a browser."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from support.backends.counting_http import QUESTION
from support.callers.http_process import HttpCaller, Json
from support.callers.restartable_process import RestartableProcess, restartable_process
from support.sessions.asking import task_id
from support.system.authorization_server import AuthorizationServer, serving
from support.system.ports import free_port
from support.system.processes import sandbox_workers_of
from support.waiting import eventually

CODE = 'kept = 40 + 2\nsaid = await mcp.call_tool("tracker", "echo")\nprint("in")\n(said, kept)'
CAREFUL = """
try:
    said = await mcp.call_tool("tracker", "echo")
except RuntimeError as error:
    said = str(error)
said
"""


@pytest.fixture
async def endpoint(tmp_path: Path) -> AsyncIterator[RestartableProcess]:
    """A browser also returns to its port after a restart."""
    async with restartable_process(tmp_path, "--port", str(free_port())) as running:
        yield running


async def a_script_at_a_login(caller: HttpCaller, server: AuthorizationServer) -> Json:
    """The reply to a script that is parked, because the server that it calls wants a login."""
    added = await caller.value("add_server", name="tracker", url=server.resource)
    assert added["server"]["status"] == "authorizing"
    promotion = await caller.call("codemode_execute", code=CODE, timeout=20)
    process = caller.endpoint.process
    await eventually(lambda: sandbox_workers_of(process.pid) == [], what="it is parked")
    assert server.calls == []
    return promotion


def link_in(promotion: Json) -> str:
    (question,) = promotion["structuredContent"]["pending_on_server"]["elicitations_for_server"]
    assert question["url"] in promotion["content"][0]["text"]
    return str(question["url"])


async def result_of(caller: HttpCaller, promotion: Json) -> Json:
    value = await caller.value("codemode_execute", task_id=task_id(promotion), timeout=20)
    assert value["success"], value
    return value


async def test_a_script_that_waits_for_a_login_continues_when_the_browser_returns(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    promotion = await a_script_at_a_login(caller, server)
    async with endpoint.http.get(link_in(promotion)) as page:
        assert page.status == 200
    value = await result_of(caller, promotion)
    assert (value["result"], value["logs"], value["stats"]["mcpCalls"]) == (["echo", 42], ["in"], 1)
    assert len(server.calls) == 1


async def test_pasting_the_callback_address_resumes_the_script(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    promotion = await a_script_at_a_login(caller, server)
    async with endpoint.http.get(link_in(promotion), allow_redirects=False) as page:
        ended = page.headers["location"]
    await caller.value("finish_authorization", server="tracker", redirect_url=ended)
    assert (await result_of(caller, promotion))["result"] == ["echo", 42]


async def test_a_declined_login_is_an_exception_in_the_script(
    server: AuthorizationServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    promotion = await a_script_at_a_login(caller, server)
    (question,) = (await caller.value("get_elicitations"))["requests"]
    await caller.value("respond_to_elicitation", request_id=question["requestId"], action="decline")
    ended = await caller.call("codemode_execute", task_id=task_id(promotion), timeout=20)
    error = ended["structuredContent"]["error"]
    assert (error["name"], error["line"]) == ("RuntimeError", 2)
    assert "was not logged in to" in error["message"]
    assert server.calls == []


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_a_script_at_a_login_survives_a_kill_and_continues_after_the_login(
    server: AuthorizationServer, endpoint: RestartableProcess, how: str
) -> None:
    """The call was not sent before the login and is sent once after it."""
    caller = await endpoint.caller()
    promotion = await a_script_at_a_login(caller, server)
    await endpoint.restart(how)
    async with endpoint.http.get(link_in(promotion)) as page:
        assert page.status == 200
    assert (await result_of(caller, promotion))["result"] == ["echo", 42]
    assert (len(server.calls), server.asked) == (1, 1)


# A call that was under way before the login was wanted.


@dataclass
class AskingServer(AuthorizationServer):
    """2026-07-28: a call is asked something, and with the answer it needs rights that the first login did not give.

    `came` is whether each call came with an answer.
    """

    came: list[bool] = field(default_factory=list)

    async def mcp(self, request: web.Request) -> web.StreamResponse:
        if request.method != "POST":
            return web.Response(status=405)
        message = await request.json()
        token, params = request.headers.get("authorization", "").partition(" ")[2], message.get("params", {})
        if token not in self.valid:
            return self.not_let_in(401, "")
        result: dict[str, Any] = {"resultType": "complete"}
        match message["method"]:
            case "server/discover":
                info = {"name": "asking", "version": "1"}
                result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": info}
            case "tools/list":
                result["tools"] = [{"name": "echo", "inputSchema": {"type": "object"}}]
            case "tools/call":
                self.came.append("inputResponses" in params)
                if not self.came[-1]:
                    result = {"resultType": "input_required", "inputRequests": {"sure": QUESTION}}
                elif "all" not in self.scopes[token]:
                    return self.not_let_in(403, ', error="insufficient_scope", scope="all"')
                else:
                    result["content"] = [{"type": "text", "text": "done"}]
        return web.json_response({"jsonrpc": "2.0", "id": message["id"], "result": result})


async def questions(caller: HttpCaller, mode: str) -> list[Json]:
    return [each for each in (await caller.value("get_elicitations"))["requests"] if each["mode"] == mode]


@pytest.fixture
async def asking_server() -> AsyncIterator[AskingServer]:
    async with serving(AskingServer()) as running:
        yield running


async def a_script_at_a_second_login(caller: HttpCaller, server: AskingServer, code: str) -> Json:
    """The reply to a script whose call was asked and answered, and wants another login for that."""
    added = await caller.value("add_server", name="tracker", url=server.resource)
    async with caller.endpoint.http.get(added["server"]["authorizationUrl"]) as page:
        assert page.status == 200
    promotion = await caller.call("codemode_execute", code=code, timeout=20)
    (question,) = await questions(caller, "form")
    await caller.value(
        "respond_to_elicitation", request_id=question["requestId"], action="accept", content={"sure": True}
    )

    async def wants_login() -> bool:
        return bool(await questions(caller, "url"))

    await eventually(wants_login, what="the login is asked for")
    await eventually(lambda: sandbox_workers_of(caller.endpoint.process.pid) == [], what="it is parked")
    assert server.came == [False, True]
    return promotion


async def test_a_call_that_was_answered_once_continues_after_the_login(
    asking_server: AskingServer, endpoint: RestartableProcess
) -> None:
    caller = await endpoint.caller()
    promotion = await a_script_at_a_second_login(caller, asking_server, CODE)
    (question,) = await questions(caller, "url")
    async with endpoint.http.get(question["url"]) as page:
        assert page.status == 200
    assert (await result_of(caller, promotion))["result"] == ["done", 42]
    assert asking_server.came == [False, True, True]


@pytest.mark.parametrize("how", ["kill", "stop"])
async def test_a_call_that_was_answered_once_is_not_started_again(
    asking_server: AskingServer, endpoint: RestartableProcess, how: str
) -> None:
    """The call waits for a login like an unsent one, but the server has started it, and it may have side effects."""
    caller = await endpoint.caller()
    promotion = await a_script_at_a_second_login(caller, asking_server, CAREFUL)
    await endpoint.restart(how)
    value = await caller.value("codemode_execute", task_id=task_id(promotion), timeout=20)
    assert asking_server.came == [False, True], "it was not sent again"
    assert "not known whether it ran" in value["result"]
