"""Console requests for sessions at other replicas reach the right replica and run at most once."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from emceepee.console.api import ConsoleApi
from emceepee.console.console_request import ConsoleRequest
from emceepee.console.peers import PeerAnswer
from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.web.asgi import Receive, Send
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.fakes.peer_consoles import FakePeer, FakePeers
from support.fakes.session_source import SessionSource
from support.sessions.scene import Scene, a_scene

QUERIES = ("/console/request", "/console/task")
ACTIONS = ("/console/answer", "/console/cancel-task", "/console/end-session")


class Replica:
    """The console of one that has a session of its own, and knows two others."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.one, self.two = FakePeer("1.1"), FakePeer("2.2")
        self.peers = FakePeers(self.one, self.two)
        self.source = SessionSource(scene.session)
        self.api = ConsoleApi(self.source, scene.clock, scene.session.limits, self.peers)
        self.routes = {route.path: route for route in self.api.routes()}

    async def get(self, path: str, *, is_from_peer: bool = False, **query: str) -> tuple[int, Any]:
        return await self._serve(path, query, b"", is_from_peer=is_from_peer)

    async def post(self, path: str, *, is_from_peer: bool = False, **given: Any) -> tuple[int, Any]:
        return await self._serve(path, {}, json.dumps(given).encode(), is_from_peer=is_from_peer)

    async def ask(self, path: str, **given: str) -> tuple[int, Any]:
        query, body = (given, b"") if path in QUERIES else ({}, json.dumps(given).encode())
        return await self._serve(path, query, body, is_from_peer=False)

    async def open_feed(self) -> "asyncio.Future[None]":
        async def receive() -> JsonObject:
            await asyncio.Event().wait()
            raise AssertionError

        async def send(message: JsonObject) -> None:
            pass

        route = self.routes["/console/feed"]
        feed = asyncio.ensure_future(route.serve(_request("/console/feed", {}, receive, send)))
        await settle()
        return feed

    async def _serve(self, path: str, query: dict[str, str], body: bytes, *, is_from_peer: bool) -> tuple[int, Any]:
        sent: list[JsonObject] = []

        async def receive() -> JsonObject:
            return {"type": "http.request", "body": body}

        async def send(message: JsonObject) -> None:
            sent.append(message)

        await self.routes[path].serve(_request(path, query, receive, send, is_from_peer=is_from_peer))
        return sent[0]["status"], json.loads(b"".join(part.get("body", b"") for part in sent[1:]))


def _request(
    path: str, query: dict[str, str], receive: Receive, send: Send, *, is_from_peer: bool = False
) -> ConsoleRequest:
    return ConsoleRequest(
        principal="local", path=path, query=query, headers={}, receive=receive, send=send, is_from_peer=is_from_peer
    )


@asynccontextmanager
async def a_replica() -> AsyncIterator[Replica]:
    async with a_scene(one=ScriptedBackend()) as scene:
        replica = Replica(scene)
        try:
            yield replica
        finally:
            await replica.api.close()


def says(status: int, **value: Any) -> PeerAnswer:
    return PeerAnswer(status, json.dumps(value).encode())


@pytest.mark.parametrize("path", [*QUERIES, *ACTIONS])
async def test_the_replica_that_holds_the_session_answers_the_console(path: str) -> None:
    async with a_replica() as replica:
        replica.two.answer = lambda request: says(200, done=request.principal)
        assert await replica.ask(path, session="theirs", id="ü&x") == (200, {"done": "local"})
        assert len(replica.one.asked) == len(replica.two.asked) == 1


@pytest.mark.parametrize("path", [*QUERIES, *ACTIONS])
async def test_the_answer_of_another_replica_is_returned_unchanged(path: str) -> None:
    async with a_replica() as replica:
        replica.one.answer = lambda request: says(409, error={"code": "ERR_X", "message": "No."})
        assert await replica.ask(path, session="theirs") == (409, {"error": {"code": "ERR_X", "message": "No."}})
        assert replica.two.asked == []


async def test_query_and_body_reach_the_other_replica_unchanged() -> None:
    async with a_replica() as replica:
        replica.one.answer = lambda request: says(200)
        await replica.get("/console/task", session="theirs", id="ü&x=1")
        await replica.post("/console/answer", session="theirs", requestId="r", content={"ü": [1, None]})
        query, action = replica.one.asked
        parts = urlsplit(query.target)
        assert (query.method, parts.path, query.body) == ("GET", "/console/task", b"")
        assert parse_qs(parts.query) == {"session": ["theirs"], "id": ["ü&x=1"]}
        assert (action.method, action.target) == ("POST", "/console/answer")
        assert json.loads(action.body) == {"session": "theirs", "requestId": "r", "content": {"ü": [1, None]}}


async def test_the_replica_whose_feed_reported_the_session_is_asked_first() -> None:
    async with a_replica() as replica:
        replica.one.tell_all()
        replica.two.tell_all("theirs")
        feed = await replica.open_feed()
        replica.two.answer = lambda request: says(200)
        await replica.ask("/console/answer", session="theirs")
        assert replica.one.asked == []
        replica.one.tell("session", id="theirs")
        await replica.scene.clock.advance(1)
        await replica.ask("/console/answer", session="theirs")
        assert len(replica.one.asked) == 1
        feed.cancel()


@pytest.mark.parametrize("path", [*QUERIES, *ACTIONS])
async def test_a_session_without_a_holder_is_reported_as_ended(path: str) -> None:
    async with a_replica() as replica:
        with pytest.raises(EmceepeeError, match="has ended") as caught:
            await replica.ask(path, session="nobody's")
        assert caught.value.code is ErrorCode.SESSION_NOT_FOUND
        assert len(replica.one.asked) == len(replica.two.asked) == 1


@pytest.mark.parametrize("path", [*QUERIES, *ACTIONS])
async def test_a_forwarded_console_request_is_not_forwarded_again(path: str) -> None:
    async with a_replica() as replica:
        ask = replica.get if path in QUERIES else replica.post
        with pytest.raises(EmceepeeError, match="has ended"):
            await ask(path, is_from_peer=True, session="theirs")
        await replica.get("/waterfall/json", is_from_peer=True)
        assert replica.one.asked == replica.two.asked == []


async def test_a_request_for_a_local_session_or_an_invalid_id_is_not_forwarded() -> None:
    async with a_replica() as replica:
        timer = await replica.scene.value("set_timer", duration_ms=60_000, message="tea")
        own = replica.scene.session.session_id
        status, _ = await replica.post("/console/delete-timer", session=own, timerId=timer["timerId"])
        assert status == 200
        for no_id in (None, 7, ["x"]):
            with pytest.raises(EmceepeeError, match="has ended"):
                await replica.post("/console/delete-timer", session=no_id)
        assert replica.one.asked == replica.two.asked == []


async def test_an_action_at_a_lost_replica_is_not_retried_at_another() -> None:
    async with a_replica() as replica:
        replica.one.is_silent = True
        replica.two.answer = lambda request: says(200)
        with pytest.raises(EmceepeeError, match="may have done it"):
            await replica.ask("/console/answer", session="theirs")
        assert replica.two.asked == []


async def test_a_query_at_a_lost_replica_is_retried_at_another() -> None:
    async with a_replica() as replica:
        replica.one.is_silent = True
        replica.two.answer = lambda request: says(200, found=True)
        assert await replica.ask("/console/task", session="theirs") == (200, {"found": True})


async def test_a_session_that_may_have_been_taken_over_is_looked_up_at_other_replicas() -> None:
    async with a_replica() as replica:
        session = replica.scene.session

        async def confirm() -> None:
            replica.source.is_sure = True
            replica.source.leave(session)

        replica.source.is_sure = False
        replica.source.confirm = confirm  # type: ignore[method-assign] # what a directory does after a pause
        replica.one.answer = lambda request: says(200, by="one")
        assert await replica.ask("/console/answer", session=session.session_id) == (200, {"by": "one"})


# All requests as one document.


async def test_the_document_contains_the_requests_of_all_replicas() -> None:
    async with a_replica() as replica:
        await replica.scene.call("list_servers")
        _, own = await replica.get("/waterfall/json", is_from_peer=True)
        [own_id] = own["sessions"]
        [request] = own["sessions"][own_id]
        failed = request | {"status": "error", "type": "resource_read"}
        replica.one.answer = lambda _: says(200, **own | {"sessions": {"theirs": [request, failed]}})
        replica.two.answer = lambda _: says(200, **own | {"sessions": {"moved": [request], own_id: [failed]}})
        _, document = await replica.get("/waterfall/json")
        assert document["sessions"] == {own_id: [request, failed], "theirs": [request, failed], "moved": [request]}
        kind = request["type"]
        assert document["stats"] == {
            "totalRequests": 5,
            "sessionCount": 3,
            "byStatus": {"success": 3, "error": 2},
            "byType": {kind: 3, "resource_read": 2},
        }
        assert [each.asked[0].target for each in (replica.one, replica.two)] == ["/waterfall/json"] * 2


async def test_a_replica_that_does_not_answer_is_left_out_of_the_document() -> None:
    async with a_replica() as replica:
        replica.one.is_silent = True
        replica.two.answer = lambda request: PeerAnswer(200, b"no JSON")
        status, document = await replica.get("/waterfall/json")
        assert (status, list(document["sessions"])) == (200, [replica.scene.session.session_id])
