"""What the HTTP endpoint leaves to its neighbor, and what it takes from the first request of a session."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from emceepee.guard.gate import Gate, GateRules
from emceepee.guard.policy import AddServerPolicy
from emceepee.server.http_endpoint import HttpEndpoint, HttpParts
from emceepee.server.kernel import build_kernel
from emceepee.sessions.session import Session
from emceepee.web.asgi import Headers, Receive, Scope, Send, respond
from support.http_door import HELLO
from support.installation import an_installation
from support.visits import Answered, raw_headers

HI = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": HELLO}


class FakeNeighbor:
    """Serves one path."""

    def __init__(self) -> None:
        self.log: list[str] = []

    async def serve(self, scope: Scope, headers: Headers, receive: Receive, send: Send) -> bool:
        self.log.append(scope["path"])
        if scope["path"] != "/theirs":
            return False
        await respond(send, 200, b"welcome")
        return True

    def drain(self) -> None:
        self.log.append("drained")

    async def close(self) -> None:
        self.log.append("closed")


class Place:
    def __init__(self, endpoint: HttpEndpoint, neighbor: FakeNeighbor) -> None:
        self.endpoint, self.neighbor = endpoint, neighbor

    async def ask(self, method: str, path: str, body: object = None, **headers: str) -> Answered:
        answered = Answered()

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": json.dumps(body).encode()}

        given = list(raw_headers({"host": "localhost", "content_type": "application/json", **headers}).items())
        scope = {"type": "http", "method": method, "path": path, "headers": given, "client": ("127.0.0.1", 5)}
        await self.endpoint(scope, receive, answered.send)
        return answered

    def sessions(self) -> list[Session]:
        return self.endpoint.directory.sessions_of("local")


@asynccontextmanager
async def a_place() -> AsyncIterator[Place]:
    async with an_installation() as installation:
        neighbor = FakeNeighbor()
        parts = HttpParts(
            kernel=build_kernel(),
            directory=installation.directory,
            gate=Gate(GateRules()),
            policy=AddServerPolicy(remote_commands=False, urls=()),
            neighbor=neighbor,
        )
        yield Place(HttpEndpoint(parts), neighbor)


async def test_a_neighbor_serves_what_is_not_ours_and_what_it_does_not_serve_is_not_found() -> None:
    async with a_place() as place:
        assert (await place.ask("GET", "/theirs")).body == b"welcome"
        assert (await place.ask("GET", "/nobodys")).status == 404
        assert (await place.ask("GET", "/healthz")).status == 200
        assert place.neighbor.log == ["/theirs", "/nobodys"]


@pytest.mark.parametrize(
    ("headers", "status"), [({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403)]
)
async def test_nobody_reaches_a_neighbor_past_the_checks_of_host_and_origin(
    headers: dict[str, str], status: int
) -> None:
    async with a_place() as place:
        assert (await place.ask("GET", "/theirs", **headers)).status == status
        assert place.neighbor.log == []


async def test_a_neighbor_ends_its_streams_and_closes_with_us() -> None:
    async with a_place() as place:
        place.endpoint.drain()
        place.endpoint.drain()
        await place.endpoint.close()
        assert place.neighbor.log == ["drained", "closed"]


@pytest.mark.parametrize(("said", "waits"), [("on-use", True), ("On-Use ", True), ("", False), ("at once", False)])
async def test_a_caller_can_ask_that_servers_are_connected_only_when_they_are_used(said: str, waits: bool) -> None:
    async with a_place() as place:
        assert (await place.ask("POST", "/mcp", HI, emceepee_connect=said)).status == 200
        assert [(session.connects_on_use, session.label) for session in place.sessions()] == [(waits, "tests 1")]
