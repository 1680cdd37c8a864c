"""Servers with a login, through the tools: the questions, and the calls during the login."""

import asyncio
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import cast

import aiohttp
import pytest

from emceepee.app.session_parts import session_parts
from emceepee.clock import SystemClock
from emceepee.config.settings import Config
from emceepee.sessions.logins.login_records import LoginRecords
from emceepee.sessions.logins.server_logins import CHANGES, FixedCallback
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.secret_records import ServerKey
from emceepee.state.question import Question
from emceepee.store.store import Store
from emceepee.tools.request_context import RequestContext
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import settle
from support.sessions.asking import task_id
from support.sessions.login_scene import DurableStore, a_login_scene, browse
from support.sessions.scene import Scene
from support.system.authorization_server import AuthorizationServer
from support.waiting import eventually


async def add(scene: Scene, server: AuthorizationServer, **oauth: object) -> JsonObject:
    settings = {"oauth": oauth} if oauth else {}
    added = await scene.value("add_server", name="tracker", url=server.resource, **settings)
    return cast(JsonObject, added["server"])


def has_status(scene: Scene, status: str) -> Callable[[], bool]:
    return lambda: scene.status("tracker") == status


async def asked(scene: Scene) -> list[JsonObject]:
    return cast(list[JsonObject], (await scene.value("get_elicitations"))["requests"])


async def echo(scene: Scene, tool: str = "echo") -> JsonObject:
    return await scene.call("execute_tool", server="tracker", tool=tool, arguments={})


async def log_in(scene: Scene, server: AuthorizationServer, **oauth: object) -> None:
    added = await add(scene, server, **oauth)
    await browse(added["authorizationUrl"])
    await eventually(has_status(scene, "connected"))


async def test_adding_a_server_that_needs_a_login_returns_at_once_and_keeps_the_server(
    scene: Scene, server: AuthorizationServer
) -> None:
    added = await add(scene, server)
    assert added["status"] == "authorizing"
    (question,) = await asked(scene)
    assert (question["mode"], question["url"]) == ("url", added["authorizationUrl"])
    assert "finish_authorization" in question["message"]
    (listed,) = (await scene.value("list_servers"))["servers"]
    assert (listed["status"], listed["authorizationUrl"]) == ("authorizing", added["authorizationUrl"])

    ended = await browse(added["authorizationUrl"])
    assert ended.startswith("http://127.0.0.1:")
    await eventually(has_status(scene, "connected"))
    assert await asked(scene) == []
    assert (await echo(scene))["content"][0]["text"] == "echo"
    assert "authorizationUrl" not in (await scene.value("list_servers"))["servers"][0]


async def test_a_login_without_a_reachable_callback_is_finished_by_pasting_the_final_address(
    server: AuthorizationServer,
) -> None:
    callback = FixedCallback("http://127.0.0.1:1/oauth/callback", "Only pasting helps.")
    async with session_parts(Config(), SystemClock(), None, callback) as parts, a_login_scene(parts) as scene:
        added = await add(scene, server)
        (question,) = await asked(scene)
        assert "agree there. Only pasting helps. If the browser ends" in question["message"]
        ended = await browse(added["authorizationUrl"], comes_back=False)
        done = await scene.value("finish_authorization", server="tracker", redirect_url=ended)
        assert done["server"]["status"] == "connected"


async def test_pasting_the_callback_address_finishes_a_login(scene: Scene, server: AuthorizationServer) -> None:
    added = await add(scene, server)
    wrong = await scene.error("finish_authorization", server="tracker", redirect_url="http://x/?code=1&state=2")
    assert "another login" in wrong["message"]
    ended = await browse(added["authorizationUrl"], comes_back=False)
    done = await scene.value("finish_authorization", server="tracker", redirect_url=ended)
    assert done["server"]["status"] == "connected"
    late = await scene.error("finish_authorization", server="tracker", redirect_url=ended)
    assert "No login" in late["message"]


async def test_a_call_that_needs_a_login_becomes_a_task_and_continues_after_the_login(
    scene: Scene, server: AuthorizationServer
) -> None:
    added = await add(scene, server)
    reply = await echo(scene)
    task = task_id(reply)
    assert server.calls == []
    await browse(added["authorizationUrl"])
    result = await scene.call("get_task_result", task_id=task)
    assert result["content"][0]["text"] == "echo"
    assert len(server.calls) == 1


async def test_a_declined_login_fails_the_waiting_calls(scene: Scene, server: AuthorizationServer) -> None:
    await add(scene, server)
    reply = await echo(scene)
    (question,) = await asked(scene)
    await scene.value("respond_to_elicitation", request_id=question["requestId"], action="decline")
    error = await scene.error("get_task_result", task_id=task_id(reply))
    assert error["code"] == "TOOL_ERR_LOGIN_NEEDED"
    assert "declined" in error["message"]
    await eventually(has_status(scene, "error"))
    again = await scene.value("reconnect_server", name="tracker")
    assert again["server"]["status"] == "authorizing"


async def test_a_login_that_starts_while_a_declined_one_ends_is_a_new_login(
    scene: Scene, server: AuthorizationServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of the declined login is deleted first, which may take some turns of the loop."""
    drop, is_ending, may_end = LoginRecords.drop_login, asyncio.Event(), asyncio.Event()

    async def drop_slowly(records: LoginRecords, key: ServerKey) -> None:
        is_ending.set()
        await may_end.wait()
        await drop(records, key)

    await add(scene, server)
    (declined,) = await asked(scene)
    monkeypatch.setattr(LoginRecords, "drop_login", drop_slowly)
    await scene.value("respond_to_elicitation", request_id=declined["requestId"], action="decline")
    await asyncio.wait_for(is_ending.wait(), 10)
    refusals = server.refusals
    reconnecting = asyncio.create_task(scene.value("reconnect_server", name="tracker"))
    await eventually(lambda: server.refusals > refusals)
    await settle()
    may_end.set()
    again = (await asyncio.wait_for(reconnecting, 10))["server"]
    assert again["status"] == "authorizing"
    (question,) = await asked(scene)
    assert question["url"] == again["authorizationUrl"]
    task = task_id(await asyncio.wait_for(echo(scene), 10))
    await browse(again["authorizationUrl"])
    assert (await scene.call("get_task_result", task_id=task))["content"][0]["text"] == "echo"


async def test_accepting_the_login_question_only_opens_the_page(scene: Scene, server: AuthorizationServer) -> None:
    added = await add(scene, server)
    (question,) = await asked(scene)
    await scene.value("respond_to_elicitation", request_id=question["requestId"], action="accept")
    assert scene.status("tracker") == "authorizing"
    await browse(added["authorizationUrl"])
    await eventually(has_status(scene, "connected"))


async def test_a_refused_token_is_renewed_and_the_call_is_sent_again_once(
    scene: Scene, server: AuthorizationServer
) -> None:
    await log_in(scene, server)
    server.valid.clear()
    server.refusals = 0
    assert (await echo(scene))["content"][0]["text"] == "echo"
    assert (server.refusals, len(server.calls)) == (1, 1)
    assert [form.fields["grant_type"] for form in server.forms][-1] == "refresh_token"


async def test_an_expired_token_is_renewed_before_the_server_refuses_it(
    scene: Scene, server: AuthorizationServer
) -> None:
    server.lives = 0
    await log_in(scene, server)
    server.refusals, server.lives = 0, 3600
    await echo(scene)
    assert server.refusals == 0


async def test_an_outage_of_the_authorization_server_does_not_discard_the_login(
    scene: Scene, server: AuthorizationServer
) -> None:
    await log_in(scene, server)
    server.valid.clear()
    server.status = 503
    error = (await echo(scene))["structuredContent"]["error"]
    assert "call again in a while" in error["message"]
    assert await asked(scene) == []
    assert server.calls == []


async def test_additional_scopes_are_requested_during_a_call(scene: Scene, server: AuthorizationServer) -> None:
    server.needed["write"] = "all"
    await log_in(scene, server, scopes="some")
    reply = await echo(scene, "write")
    (question,) = await asked(scene)
    assert "scope=some+all" in question["url"]
    await browse(question["url"])
    result = await scene.call("get_task_result", task_id=task_id(reply))
    assert result["content"][0]["text"] == "write"
    assert [name for _, name in server.calls] == ["write"]


async def test_a_server_with_a_configured_token_never_starts_a_login(scene: Scene, server: AuthorizationServer) -> None:
    headers = {"Authorization": "Bearer wrong"}
    error = await scene.error("add_server", name="tracker", url=server.resource, headers=headers)
    assert "wants a login" in error["message"]
    assert server.registrations == []


async def test_a_device_code_is_shown_where_the_browser_is_on_another_machine(
    scene: Scene, server: AuthorizationServer
) -> None:
    added = await add(scene, server, grant="device_code")
    (question,) = await asked(scene)
    assert question["url"] == added["authorizationUrl"] == f"{server.url}/enter"
    assert "ABCD-EFGH" in question["message"]
    server.is_approved = True
    await eventually(has_status(scene, "connected"), within=10)


async def test_a_login_with_client_credentials_asks_no_question(scene: Scene, server: AuthorizationServer) -> None:
    added = await add(scene, server, grant="client_credentials", client_id="me")
    assert added["status"] == "connected"
    server.valid.clear()
    assert (await echo(scene))["content"][0]["text"] == "echo"


async def test_removing_a_server_revokes_its_tokens(scene: Scene, server: AuthorizationServer) -> None:
    await log_in(scene, server)
    await scene.value("remove_server", name="tracker")
    await eventually(lambda: len(server.revoked) == 2)
    assert server.valid == set()
    assert (await add(scene, server))["status"] == "authorizing"


async def test_removing_a_server_ends_its_login(scene: Scene, server: AuthorizationServer) -> None:
    added = await add(scene, server)
    await scene.value("remove_server", name="tracker")
    await eventually(lambda: not scene.session.questions.is_any_open)
    async with aiohttp.ClientSession() as browser, browser.get(added["authorizationUrl"]) as found:
        assert found.status == 400


async def test_two_principals_share_no_token_no_connection_and_no_question(
    parts: SessionParts, server: AuthorizationServer
) -> None:
    async with a_login_scene(parts, "ann") as anns, a_login_scene(parts, "bob") as bobs:
        await log_in(anns, server)
        anns.quiet()
        assert (await add(bobs, server))["status"] == "authorizing"
        (error,) = (await bobs.value("list_tools", server="tracker"))["errors"]
        assert "requires a login first" in error["message"]
        assert await asked(anns) == []
        await browse((await asked(bobs))[0]["url"])
        await eventually(has_status(bobs, "connected"))
        await echo(anns)
        await echo(bobs)
        (anns_token, _), (bobs_token, _) = server.calls
        assert anns_token != bobs_token
        assert server.peers[anns_token].isdisjoint(server.peers[bobs_token])
        assert anns.events() == []
        await bobs.value("remove_server", name="tracker")
        await eventually(lambda: bobs_token in server.revoked)
        await echo(anns)
        assert server.calls[-1] == (anns_token, "echo")


async def test_the_sessions_of_a_principal_share_a_login(parts: SessionParts, server: AuthorizationServer) -> None:
    async with a_login_scene(parts) as one, a_login_scene(parts) as other:
        added = await add(one, server)
        waiting = await echo(other)
        (question,) = await asked(other)
        assert question["url"] == added["authorizationUrl"]
        await browse(question["url"])
        await other.call("get_task_result", task_id=task_id(waiting))
        await eventually(has_status(one, "connected"))
        assert await asked(one) == await asked(other) == []
        assert len(server.registrations) == 1


async def test_a_login_continues_after_a_restart_with_the_address_that_the_person_opened(
    server: AuthorizationServer,
) -> None:
    store: Store = DurableStore()
    async with AsyncExitStack() as first:
        before = await first.enter_async_context(session_parts(Config(), SystemClock(), store))
        scene = await first.enter_async_context(a_login_scene(before))
        added = await add(scene, server)
    async with session_parts(Config(), SystemClock(), store) as after, a_login_scene(after) as scene:
        again = await add(scene, server)
        assert again["authorizationUrl"] == added["authorizationUrl"]
        await browse(added["authorizationUrl"])
        await eventually(has_status(scene, "connected"))
    async with session_parts(Config(), SystemClock(), store) as third, a_login_scene(third) as scene:
        assert (await add(scene, server))["status"] == "connected"
    assert len(server.registrations) == 1


async def test_a_browser_may_return_to_another_process(server: AuthorizationServer) -> None:
    store: Store = DurableStore()
    async with (
        session_parts(Config(), SystemClock(), store) as here,
        session_parts(Config(), SystemClock(), store) as there,
        a_login_scene(here) as scene,
    ):
        added = await add(scene, server)
        ended = await browse(added["authorizationUrl"], comes_back=False)
        assert there.logins is not None
        guessed = await there.logins.receive("http://127.0.0.1/oauth/callback?code=x&state=guessed")
        assert guessed.title == "No login is waiting for this page"
        assert (await there.logins.receive(ended)).title == "Logged in"
        await eventually(has_status(scene, "connected"), within=10)
        assert (await there.logins.receive(ended)).title == "No login is waiting for this page"
        assert [secret.name for secret in await store.secrets_of("")] == [CHANGES]  # and nothing of the login


async def test_a_login_works_over_the_sse_transport(scene: Scene, server: AuthorizationServer) -> None:
    added = await scene.value("add_server", name="tracker", url=f"{server.url}/sse", type="sse")
    await browse(added["server"]["authorizationUrl"])
    await eventually(has_status(scene, "connected"))
    assert (await echo(scene))["content"][0]["text"] == "echo"
    server.valid.clear()
    assert (await echo(scene))["content"][0]["text"] == "echo"


async def test_many_calls_wait_for_one_login(scene: Scene, server: AuthorizationServer) -> None:
    added = await add(scene, server)
    replies = await asyncio.gather(*(echo(scene) for _ in range(5)))
    assert len(await asked(scene)) == 1
    await browse(added["authorizationUrl"])
    for reply in replies:
        await scene.call("get_task_result", task_id=task_id(reply))
    assert len(server.calls) == 5


# Callers that take links by the protocol's own means.


class AskedCaller:
    """A connection of such a caller, as far as a session sees it."""

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.withdrawn: list[str] = []
        self.completed: list[str] = []
        self.takes = True

    def ask(self, question: Question, call: object | None) -> bool:
        self.asked += [question] if self.takes else []
        return self.takes

    def withdraw(self, question: Question) -> None:
        self.withdrawn.append(question.request_id)

    def complete(self, request_id: str) -> None:
        self.completed.append(request_id)


@pytest.fixture
def asked_caller(scene: Scene) -> AskedCaller:
    made = AskedCaller()
    scene.session.questions.add_asker(made)
    return made


def start(scene: Scene, caller: AskedCaller, tool: str, /, **arguments: object) -> "asyncio.Task[JsonObject]":
    context = RequestContext(session=scene.session, asker=caller)
    return scene.start(tool, caller=context, **arguments)


async def test_a_caller_that_adds_a_server_is_asked_to_log_in_and_its_calls_wait(
    scene: Scene, server: AuthorizationServer, asked_caller: AskedCaller
) -> None:
    await start(scene, asked_caller, "add_server", name="tracker", url=server.resource)
    [question] = asked_caller.asked
    call = start(scene, asked_caller, "execute_tool", server="tracker", tool="echo")
    scene.session.questions.answer_elicitation(question.request_id, "accept", None)
    later = start(scene, asked_caller, "execute_tool", server="tracker", tool="echo")
    await browse(question.params["url"])
    for each in (call, later):
        assert (await each)["content"][0]["text"] == "echo"
    assert (scene.session.tasks.all(), len(asked_caller.asked)) == ([], 1)
    assert asked_caller.completed == [question.request_id]


async def test_a_login_that_ends_in_the_browser_withdraws_the_question(
    scene: Scene, server: AuthorizationServer, asked_caller: AskedCaller
) -> None:
    await start(scene, asked_caller, "add_server", name="tracker", url=server.resource)
    [question] = asked_caller.asked
    await browse(question.params["url"])
    await eventually(has_status(scene, "connected"))
    assert asked_caller.completed == asked_caller.withdrawn == [question.request_id]


async def test_no_login_starts_before_a_call_needs_it(
    scene: Scene, server: AuthorizationServer, asked_caller: AskedCaller
) -> None:
    """A session that connects ten servers must not open ten pages."""
    added = await add(scene, server)
    assert asked_caller.asked == []
    call = start(scene, asked_caller, "execute_tool", server="tracker", tool="echo")
    await eventually(lambda: bool(asked_caller.asked))
    await browse(added["authorizationUrl"])
    assert (await call)["content"][0]["text"] == "echo"
    assert scene.session.tasks.all() == []


async def test_the_call_of_a_client_without_url_elicitation_becomes_a_task(
    scene: Scene, server: AuthorizationServer, asked_caller: AskedCaller
) -> None:
    asked_caller.takes = False
    added = await add(scene, server)
    reply = await start(scene, asked_caller, "execute_tool", server="tracker", tool="echo")
    await browse(added["authorizationUrl"])
    done = await scene.call("get_task_result", task_id=task_id(reply))
    assert done["content"][0]["text"] == "echo"


async def test_a_caller_that_could_not_be_asked_is_asked_again_on_the_next_call(
    scene: Scene, server: AuthorizationServer, asked_caller: AskedCaller
) -> None:
    await add(scene, server)
    for times in (1, 2):
        call = start(scene, asked_caller, "execute_tool", server="tracker", tool="echo")
        await eventually(lambda times=times: len(asked_caller.asked) == times)  # type: ignore[misc]  # it binds it
        scene.session.give_up_asking(asked_caller.asked[-1].request_id)
        task_id(await call)


async def test_a_declined_login_question_ends_the_login_and_the_call(
    scene: Scene, server: AuthorizationServer, asked_caller: AskedCaller
) -> None:
    await add(scene, server)
    call = start(scene, asked_caller, "execute_tool", server="tracker", tool="echo")
    await eventually(lambda: bool(asked_caller.asked))
    scene.session.questions.answer_elicitation(asked_caller.asked[0].request_id, "decline", None)
    error = (await call)["structuredContent"]["error"]
    assert "declined" in error["message"]
    assert server.calls == []
