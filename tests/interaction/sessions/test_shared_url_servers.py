"""A URL server that the sessions of a principal share: one connection, and messages only to the affected session."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast

import aiohttp
import pytest

from emceepee.app.session_parts import open_session, session_parts
from emceepee.backends.spec import BackendSpec, HttpKind, HttpTarget
from emceepee.clock import SystemClock
from emceepee.config.settings import Config
from emceepee.state.connection.connection_state import LinkEnd, LinkEndKind
from emceepee.wire.json_types import JsonObject
from support.backends.web_backend import WebBackend, WebCall, a_web_backend
from support.fakes.clock import FakeClock
from support.sessions.scene import Scene
from support.system.authorization_server import an_authorization_server, serving
from support.system.personal_server import PersonalServer
from support.waiting import eventually

ALL = {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}}
QUESTION = {"message": "Sure?", "requestedSchema": {"type": "object", "properties": {}}}


@asynccontextmanager
async def sessions_of(*principals: str, url: str, kind: HttpKind = "http") -> AsyncIterator[list[Scene]]:
    """One session for each that is named, with the shared server `one`."""
    spec = BackendSpec(name="one", target=HttpTarget(url=url, kind=kind), is_shared=True)
    async with AsyncExitStack() as stack:
        parts = await stack.enter_async_context(session_parts(Config(servers=(spec,)), SystemClock()))
        scenes = []
        for number, principal in enumerate(principals):
            session = await stack.enter_async_context(open_session(f"session-{number}", principal, parts))
            scenes.append(Scene(session, cast(FakeClock, parts.clock), {}))
        yield scenes


@pytest.fixture
async def backend() -> AsyncIterator[WebBackend]:
    async with a_web_backend() as running:
        running.capabilities = ALL
        yield running


async def begin_call(scene: Scene, backend: WebBackend) -> tuple["asyncio.Task[JsonObject]", WebCall]:
    calling = scene.start("execute_tool", server="one", tool="wait", on_question="wait")
    return calling, await backend.next_call()


async def asked(scene: Scene) -> list[str]:
    return [request["message"] for request in (await scene.value("get_elicitations"))["requests"]]


async def notified(scene: Scene) -> list[str]:
    return [each["method"] for each in (await scene.value("get_notifications"))["notifications"]]


def how_often(backend: WebBackend, method: str) -> int:
    return sum(asked == method for asked, _ in backend.asked)


async def test_sessions_of_a_principal_share_a_connection_that_closes_with_the_last_session(
    backend: WebBackend,
) -> None:
    async with sessions_of("ann", "ann", "ann", "bob", url=backend.url) as (*ann, bob):
        for scene in ann:
            result = await scene.call("execute_tool", server="one", tool="echo", args={"text": "hello"})
            assert not result.get("isError"), result
        assert len(backend.sessions) == how_often(backend, "initialize") == 1
        await bob.value("list_tools", server="one")
        assert len(backend.sessions) == 2
        await ann[0].session.close()
        await ann[1].session.close()
        assert len(backend.sessions) == 2
        await ann[2].session.close()
        assert len(backend.sessions) == 1
    assert not backend.sessions


async def test_a_question_on_the_stream_of_a_call_reaches_the_session_of_that_call(backend: WebBackend) -> None:
    async with sessions_of("ann", "ann", url=backend.url) as (one, two):
        (first, _), (second, call) = await begin_call(one, backend), await begin_call(two, backend)
        call.ask("q1", "elicitation/create", **QUESTION)
        await eventually(lambda: two.session.questions.is_any_open)
        assert (await asked(one), await asked(two)) == ([], ["Sure?"])
        (question,) = (await two.value("get_elicitations"))["requests"]
        await two.value("respond_to_elicitation", request_id=question["requestId"], action="accept", content={})
        await eventually(lambda: "q1" in backend.answers)
        assert backend.answers["q1"]["result"]["action"] == "accept"
        for each in backend.calls:
            each.finish()
        await asyncio.gather(first, second)


async def test_a_question_without_a_call_reaches_the_only_session_with_a_call_or_is_refused(
    backend: WebBackend,
) -> None:
    async with sessions_of("ann", "ann", url=backend.url) as (one, two):
        first, _ = await begin_call(one, backend)
        await two.value("list_tools", server="one")
        await eventually(lambda: backend.streams == 1)
        backend.push({"id": "q1", "method": "elicitation/create", "params": QUESTION})
        await eventually(lambda: one.session.questions.is_any_open)
        assert await asked(two) == []
        second, _ = await begin_call(two, backend)
        backend.push({"id": "q2", "method": "elicitation/create", "params": QUESTION})
        await eventually(lambda: "q2" in backend.answers)
        assert "2 sessions share this server" in backend.answers["q2"]["error"]["message"]
        for each in backend.calls:
            each.finish()
        await asyncio.gather(first, second)


async def test_change_notifications_on_any_stream_reach_users_and_subscribers_of_the_server(
    backend: WebBackend,
) -> None:
    async with sessions_of("ann", "ann", "bob", url=backend.url) as (one, two, other):
        await other.value("list_tools", server="one")
        await two.value("subscribe_resource", server="one", uri="a:two")
        calling, call = await begin_call(one, backend)
        call.notify("notifications/resources/updated", uri="a:two")
        call.notify("notifications/tools/list_changed")
        call.finish()
        await calling
        assert await notified(one) == ["notifications/tools/list_changed"]
        assert await notified(two) == ["notifications/resources/updated", "notifications/tools/list_changed"]
        assert await notified(other) == []


async def test_the_lowest_requested_log_level_is_set_and_each_session_receives_its_own_level(
    backend: WebBackend,
) -> None:
    async with sessions_of("ann", "ann", url=backend.url) as (one, two):
        await one.value("set_log_level", server="one", level="error")
        await two.value("set_log_level", server="one", level="debug")
        levels = [params["level"] for method, params in backend.asked if method == "logging/setLevel"]
        assert levels == ["error", "debug"]
        calling, call = await begin_call(one, backend)
        call.notify("notifications/message", level="info", data="of no interest")
        call.notify("notifications/message", level="error", data="that counts")
        call.finish()
        await calling
        assert [line["data"] for line in (await one.value("get_logs", server="one"))["logs"]] == ["that counts"]
        assert (await two.value("get_logs", server="one"))["logs"] == []  # it was another one's call


async def test_a_shared_server_that_lost_its_session_is_reconnected_once_for_all_sessions(backend: WebBackend) -> None:
    async with sessions_of("ann", "ann", url=backend.url) as scenes:
        for scene in scenes:
            await scene.value("list_tools", server="one")
        backend.sessions.clear()
        for scene in scenes:
            result = await scene.call("execute_tool", server="one", tool="echo", args={"text": "again"})
            assert not result.get("isError"), result
        assert len(backend.sessions) == 1
        assert how_often(backend, "initialize") == 2


async def test_the_session_of_a_shared_server_survives_a_broken_connection(backend: WebBackend) -> None:
    async with sessions_of("ann", "ann", url=backend.url) as (one, two):
        for scene in (one, two):
            await scene.value("list_tools", server="one")
        (await two.session.connection("one").ready()).end(LinkEnd(LinkEndKind.LOST, "the line was cut"))
        for scene in (one, two):
            result = await scene.call("execute_tool", server="one", tool="echo", args={"text": "again"})
            assert not result.get("isError"), result
        assert how_often(backend, "initialize") == 1


async def agree(url: str) -> None:
    async with aiohttp.ClientSession() as browser, browser.get(url) as page:
        assert page.status == 200


async def links_shown(scenes: list[Scene]) -> list[str]:
    listed = [(await scene.value("list_servers"))["servers"][0] for scene in scenes]
    return [server["authorizationUrl"] for server in listed if "authorizationUrl" in server]


async def log_in(scene: Scene) -> None:
    calling = scene.start("execute_tool", server="one", tool="echo", on_question="wait")
    await eventually(lambda: scene.session.questions.is_any_open)
    (link,) = await links_shown([scene])
    await agree(link)
    assert not (await calling).get("isError")


async def test_the_login_belongs_to_the_principal_and_every_waiting_session_continues() -> None:
    async with (
        serving(PersonalServer()) as server,
        sessions_of("ann", "ann", "ann", "bob", url=server.resource) as (*ann, bob),
    ):
        calls = [scene.start("execute_tool", server="one", tool="x", on_question="wait") for scene in ann]
        await eventually(lambda: all(scene.status("one") == "authorizing" for scene in ann))
        (link,) = set(await links_shown(ann))
        await agree(link)
        for result in await asyncio.gather(*calls):
            assert not result.get("isError"), result
        assert server.asked == len(server.owners) == 1
        assert await links_shown([bob]) == []
        assert {each.method for each in server.seen if each.login != server.logins[0]} == set()

        server.valid.clear()
        await asyncio.gather(*(scene.call("execute_tool", server="one", tool="x") for scene in ann))
        assert (server.asked, server.replayed) == (1, 0)


async def test_sessions_that_connect_before_the_first_call_are_all_notified_of_the_login() -> None:
    async with an_authorization_server() as server, sessions_of("ann", "ann", "ann", url=server.resource) as scenes:
        for scene in scenes:
            scene.session.wake()
        await eventually(lambda: all(scene.session.questions.is_any_open for scene in scenes))
        (link,) = set(await links_shown(scenes))
        await agree(link)
        await eventually(lambda: all(scene.status("one") == "connected" for scene in scenes))
        assert server.asked == 1


async def test_the_delete_request_to_a_shared_server_after_the_last_session_carries_a_token() -> None:
    async with serving(PersonalServer()) as server:
        async with sessions_of("ann", url=server.resource) as (scene,):
            await log_in(scene)
        assert server.seen[-1].method == "DELETE"


async def test_a_login_that_a_call_needs_is_asked_only_in_the_session_of_that_call() -> None:
    async with (
        an_authorization_server() as server,
        sessions_of("ann", "ann", url=server.resource) as (one, two),
    ):
        server.needed["write"] = "write"
        await log_in(one)
        await two.call("execute_tool", server="one", tool="echo")
        calling = two.start("execute_tool", server="one", tool="write", on_question="wait")
        await eventually(lambda: two.session.questions.is_any_open)
        assert await asked(one) == []
        await agree((await links_shown([two]))[0])
        assert not (await calling).get("isError")


async def test_a_server_with_the_sse_transport_can_be_shared() -> None:
    async with (
        an_authorization_server() as server,
        sessions_of("ann", "ann", url=f"{server.url}/sse", kind="sse") as scenes,
    ):
        await log_in(scenes[0])
        for scene in scenes:
            result: Any = await scene.call("execute_tool", server="one", tool="echo")
            assert result["content"][0]["text"] == "echo", result
        assert server.asked == 1
