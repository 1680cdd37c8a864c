"""A person's queries and actions on the page, each for their own sessions only."""

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.console.api import ConsoleApi
from emceepee.console.console_request import ConsoleRequest
from emceepee.console.feed import session_view
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.replay.recording_reader import parse_recording
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.fakes.session_source import SessionSource
from support.sessions.asking import elicit, sample
from support.sessions.scene import Scene, a_scene, scripted_spec

ALL_ROUTES = {
    "/waterfall/json",
    "/console/feed",
    "/console/overview",
    "/console/request",
    "/console/task",
    "/console/answer",
    "/console/complete",
    "/console/refuse",
    "/console/cancel-task",
    "/console/reconnect",
    "/console/record",
    "/console/end-recording",
    "/console/server-settings",
    "/console/disable-server",
    "/console/enable-server",
    "/console/delete-timer",
    "/console/end-session",
}


class Desk:
    """Someone at the page, logged in."""

    def __init__(self, scene: Scene, *, principal: str = "local") -> None:
        self.scene, self.principal = scene, principal
        self.house = SessionSource(scene.session)
        self.api = ConsoleApi(self.house, scene.clock, scene.session.limits)
        self._routes = {route.path: route for route in self.api.routes()}

    async def get(self, path: str, **query: str) -> Any:
        return await self._visit("GET", path, query, b"")

    async def post(self, path: str, **given: Any) -> Any:
        given.setdefault("session", self.scene.session.session_id)
        return await self._visit("POST", path, {}, json.dumps(given).encode())

    async def refused(self, path: str, **given: Any) -> EmceepeeError:
        with pytest.raises(EmceepeeError) as caught:
            await self.post(path, **given)
        return caught.value

    def visit(self, *, is_logged_in: Callable[[], bool]) -> ConsoleRequest:
        """A request of someone who stays."""

        async def receive() -> JsonObject:
            await asyncio.Event().wait()  # they do not hang up
            raise AssertionError

        async def send(message: JsonObject) -> None:
            pass

        return ConsoleRequest(
            principal=self.principal,
            path="/console/feed",
            query={},
            headers={},
            receive=receive,
            send=send,
            is_logged_in=is_logged_in,
        )

    async def _visit(self, method: str, path: str, query: dict[str, str], body: bytes) -> Any:
        sent: list[JsonObject] = []

        async def receive() -> JsonObject:
            return {"type": "http.request", "body": body}

        async def send(message: JsonObject) -> None:
            sent.append(message)

        route = self._routes[path]
        assert route.method == method
        await route.serve(
            ConsoleRequest(principal=self.principal, path=path, query=query, headers={}, receive=receive, send=send)
        )
        assert sent[0]["status"] == 200
        return json.loads(b"".join(part.get("body", b"") for part in sent[1:]))


async def test_every_route_of_the_console_api_needs_a_login() -> None:
    async with a_scene() as scene:
        routes = Desk(scene).api.routes()
        assert {route.path for route in routes} == ALL_ROUTES
        assert not any(route.is_open for route in routes)


async def test_an_answer_in_the_console_closes_the_question_for_the_caller() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        desk = Desk(scene)
        asking = elicit(scene.backends["one"])
        await settle()
        [question] = scene.quiet().session.questions.open()
        reply = await desk.post(
            "/console/answer", requestId=question.request_id, action="accept", content={"name": "Jo"}
        )
        assert reply == {"responded": question.request_id}
        assert await asking == {"action": "accept", "content": {"name": "Jo"}}
        [(kind, data)] = scene.events()
        assert (kind, data["requestId"], data["reason"]) == ("elicitation_expired", question.request_id, "answered")
        late = await scene.error("respond_to_elicitation", request_id=question.request_id, action="decline")
        assert late["code"] == "ERR_REQUEST_NOT_FOUND"


async def test_the_console_reports_that_the_model_answered_first() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"])
        await settle()
        [question] = scene.session.questions.open()
        await scene.value("respond_to_elicitation", request_id=question.request_id, action="decline")
        assert await asking == {"action": "decline"}
        refusal = await Desk(scene).refused("/console/answer", requestId=question.request_id, action="accept")
        assert refusal.code is ErrorCode.REQUEST_NOT_FOUND


async def test_an_invalid_answer_in_the_console_leaves_the_question_open() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"])
        await settle()
        [question] = scene.session.questions.open()
        desk = Desk(scene)
        refusal = await desk.refused("/console/answer", requestId=question.request_id, action="accept", content={})
        assert refusal.code is ErrorCode.INVALID_ARGUMENTS
        assert refusal.details["problems"]
        for wrong in ({"action": "shrug"}, {"action": "accept", "content": "Jo"}, {"action": None}):
            await desk.refused("/console/answer", requestId=question.request_id, **wrong)
        assert scene.session.questions.open() == [question]
        asking.cancel()


async def test_a_person_writes_or_refuses_a_completion_in_the_console() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        desk = Desk(scene)
        asking = sample(scene.backends["one"])
        await settle()
        [question] = scene.quiet().session.questions.open()
        await desk.post("/console/complete", requestId=question.request_id, text="Hello.")
        answer = await asking
        assert (answer["content"], answer["model"]) == ({"type": "text", "text": "Hello."}, "human")
        assert [(kind, data["reason"]) for kind, data in scene.events()] == [("sampling_expired", "answered")]
        refused = sample(scene.backends["one"])
        await settle()
        [question] = scene.session.questions.open()
        await desk.post("/console/refuse", requestId=question.request_id)
        await asyncio.wait([refused])
        assert "refused by a person" in str(refused.exception())


async def test_the_console_shows_and_cancels_a_task() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        desk = Desk(scene)
        call = scene.start("execute_tool", server="one", tool="slow", timeout_ms=10)
        await settle()
        await scene.clock.advance(1)
        task_id = (await call)["structuredContent"]["proxy_task"]["task_id"]
        looked = await desk.get("/console/task", session=scene.session.session_id, id=task_id)
        assert (looked["task"]["status"], looked["result"]) == ("working", None)
        assert (await desk.post("/console/cancel-task", taskId=task_id))["task"]["status"] == "cancelled"


async def test_the_console_reconnects_a_server_and_deletes_a_timer() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        desk = Desk(scene)
        assert (await desk.post("/console/reconnect", server="one"))["server"]["status"] == "connected"
        assert len(scene.backends["one"].dials) == 2
        timer = await scene.value("set_timer", duration_ms=60_000, message="tea")
        deleted = await desk.post("/console/delete-timer", timerId=timer["timerId"])
        assert deleted["timer"]["status"] == "deleted"


async def test_the_console_records_a_server_from_a_new_connection_until_the_person_downloads_the_file() -> None:
    async with a_scene(one=ScriptedBackend(), other=ScriptedBackend()) as scene:
        desk = Desk(scene)
        scene.backends["one"].answers["tools/call"] = lambda _: {"content": [{"type": "text", "text": "four"}]}
        row = (await desk.post("/console/record", server="one"))["server"]
        assert (row["status"], row["recording"], len(scene.backends["one"].dials)) == ("connected", True, 2)
        assert "already" in str(await desk.refused("/console/record", server="one"))
        await scene.call("execute_tool", server="one", tool="echo", args={"n": 2, "password": "hunter2"})
        text = (await desk.post("/console/end-recording", server="one"))["recording"]
        assert "hunter2" not in text
        recording = parse_recording(text.encode().splitlines())
        call = next(exchange for exchange in recording.exchanges if exchange.method == "tools/call")
        assert call.params == {"name": "echo", "arguments": {"n": 2, "password": "***"}}
        assert call.result == {"content": [{"type": "text", "text": "four"}]}
        assert "is not being recorded" in str(await desk.refused("/console/end-recording", server="one"))


async def test_a_recording_that_is_not_downloaded_ends_with_its_connection_and_frees_its_space() -> None:
    names, make = ["one", "two", "three", "four", "five"], ScriptedBackend
    async with a_scene(one=make(), two=make(), three=make(), four=make(), five=make()) as scene:
        desk, connections = Desk(scene), [scene.session.connection(name) for name in names]
        for name in names[:4]:
            await desk.post("/console/record", server=name)
        assert "4 recordings are already stored" in str(await desk.refused("/console/record", server="five"))
        for name in names[:4]:
            await scene.value("remove_server", server=name)
        assert (await desk.post("/console/record", server="five"))["server"]["recording"]
    assert not any(connection.recording.is_on for connection in connections)


async def test_a_recording_that_fails_to_start_frees_its_space() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        desk, backend = Desk(scene), scene.backends["one"]
        backend.refuses = LinkError(LinkFailure.UNREACHABLE, "no such host")
        for _ in range(5):
            assert "no such host" in str(await desk.refused("/console/record", server="one"))
        backend.refuses = None
        assert (await desk.post("/console/record", server="one"))["server"]["recording"]


async def test_the_console_shows_one_request_in_full_and_downloads_all_as_a_document() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        desk = Desk(scene)
        scene.backends["one"].answers["tools/call"] = lambda _: {"content": [{"type": "text", "text": "four"}]}
        await scene.call("execute_tool", server="one", tool="echo", args={"n": 2})
        document = await desk.get("/waterfall/json")
        session_id = scene.session.session_id
        [request] = document["sessions"][session_id]
        assert document["stats"] == {
            "totalRequests": 1,
            "sessionCount": 1,
            "byStatus": {"success": 1},
            "byType": {"tool_call": 1},
        }
        assert {key: value for key, value in request.items() if key != "requestId"} == {
            "sessionId": session_id,
            "type": "tool_call",
            "name": "echo",
            "server": "one",
            "args": {"n": 2},
            "startedAt": "2026-01-01T00:00:00.000Z",
            "endedAt": "2026-01-01T00:00:00.000Z",
            "durationMs": 0.0,
            "status": "success",
            "resultSummary": "four",
        }
        full = await desk.get("/console/request", session=session_id, id=request["requestId"])
        assert (full["args"], full["isCut"], full["request"]["name"]) == ({"n": 2}, False, "echo")
        with pytest.raises(EmceepeeError, match="no longer stored"):
            await desk.get("/console/request", session=session_id, id="01NOTHING")


async def test_a_session_of_another_principal_is_reported_as_unknown() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        stranger = Desk(scene, principal="stranger")
        own = [path for path in ALL_ROUTES if path not in ("/waterfall/json", "/console/feed", "/console/overview")]
        for path in own:
            looks = path in ("/console/request", "/console/task", "/console/server-settings")
            ask = stranger.get(path, session=scene.session.session_id) if looks else stranger.post(path)
            with pytest.raises(EmceepeeError) as caught:
                await ask
            assert caught.value.code is ErrorCode.SESSION_NOT_FOUND
        assert (await stranger.get("/waterfall/json"))["sessions"] == {}


async def test_the_console_ends_a_session_unless_the_session_belongs_to_its_process() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        desk = Desk(scene)
        scene.session.update_profile(transport="stdio")
        assert (await desk.refused("/console/end-session")).code is ErrorCode.NOT_ALLOWED
        scene.session.update_profile(transport="http")
        assert await desk.post("/console/end-session") == {"ended": scene.session.session_id}
        assert desk.house.ended == [scene.session]


async def test_a_logged_out_page_receives_no_more_events() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        desk = Desk(scene)
        is_in, open_pages = {"one": True, "two": True}, dict[str, asyncio.Future[None]]()
        [route] = [route for route in desk.api.routes() if route.path == "/console/feed"]
        for name in is_in:
            open_pages[name] = asyncio.ensure_future(
                route.serve(desk.visit(is_logged_in=partial(is_in.__getitem__, name)))
            )
        await settle()
        is_in["one"] = False
        desk.api.end_stale_streams()
        await asyncio.wait_for(open_pages["one"], 5)
        assert not open_pages["two"].done()
        await desk.api.close()
        await asyncio.wait_for(open_pages["two"], 5)


async def test_the_console_shows_disables_and_enables_added_servers_but_not_servers_of_the_operator() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=[scripted_spec("one")], one=ScriptedBackend(), two=backend) as scene:
        desk, session_id = Desk(scene), scene.session.session_id
        await scene.session.servers.add(scripted_spec("two"))
        found = await desk.get("/console/server-settings", session=session_id, server="two")
        assert found == {"entry": {"name": "two", "url": "http://two.test/mcp", "mode": "auto"}}
        assert await desk.post("/console/disable-server", server="two") == {"disabled": "two"}
        view = session_view(scene.session)
        assert [server["name"] for server in view["servers"] if server.get("isConfigured")] == ["one"]
        assert view["disabledServers"] == [{"name": "two", "url": "http://two.test/mcp"}]
        scene.parts.registry.set_disabled([scripted_spec("three")])
        assert session_view(scene.session)["disabledServers"][1:] == [
            {"name": "three", "url": "http://three.test/mcp", "isConfigured": True}
        ]
        scene.parts.registry.set_disabled([])
        assert await desk.post("/console/enable-server", server="two") == {"enabled": "two"}
        assert "disabledServers" not in session_view(scene.session)
        for path in ("/console/disable-server", "/console/enable-server"):
            assert (await desk.refused(path, server="one")).code is ErrorCode.NOT_ALLOWED
            assert (await desk.refused(path, server="none")).code is ErrorCode.SERVER_NOT_FOUND
            assert (await desk.refused(path)).code is ErrorCode.INVALID_ARGUMENTS
        with pytest.raises(EmceepeeError) as caught:
            await desk.get("/console/server-settings", session=session_id, server="one")
        assert caught.value.code is ErrorCode.NOT_ALLOWED
