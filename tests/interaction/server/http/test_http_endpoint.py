"""The HTTP endpoint: requests for the application beside it, and the first request of a session."""

import pytest

from emceepee.web.asgi import Headers, Receive, Scope, Send, respond
from emceepee.wire.json_rpc import TRACE_KEYS
from emceepee.wire.protocol import METHOD_HEADER, NAME_HEADER, VERSION_HEADER
from support.callers.http_process import HELLO
from support.in_process.http_endpoint import an_endpoint_client, ended

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


async def test_another_application_beside_the_endpoint_serves_its_own_paths_and_unknown_paths_are_not_found() -> None:
    fallback = FakeNeighbor()
    async with an_endpoint_client(fallback) as client:
        assert (await client.ask("GET", "/theirs")).body == b"welcome"
        assert (await client.ask("GET", "/nobodys")).status == 404
        assert (await client.ask("GET", "/healthz")).status == 200
        assert fallback.log == ["/theirs", "/nobodys"]


@pytest.mark.parametrize(
    ("headers", "status"), [({"host": "evil.example"}, 421), ({"origin": "https://evil.example"}, 403)]
)
async def test_another_application_beside_the_endpoint_is_protected_by_the_host_and_origin_checks(
    headers: dict[str, str], status: int
) -> None:
    fallback = FakeNeighbor()
    async with an_endpoint_client(fallback) as client:
        assert (await client.ask("GET", "/theirs", **headers)).status == status
        assert fallback.log == []


async def test_another_application_beside_the_endpoint_ends_its_streams_and_closes_with_it() -> None:
    fallback = FakeNeighbor()
    async with an_endpoint_client(fallback) as client:
        client.endpoint.drain()
        client.endpoint.drain()
    assert fallback.log == ["drained", "closed"]


@pytest.mark.parametrize(("said", "waits"), [("on-use", True), ("On-Use ", True), ("", False), ("at once", False)])
async def test_a_caller_can_request_that_servers_are_connected_on_first_use(said: str, waits: bool) -> None:
    async with an_endpoint_client() as client:
        assert (await client.ask("POST", "/mcp", HI, emceepee_connect=said)).status == 200
        assert [(session.profile.connects_on_use, session.profile.label) for session in client.sessions()] == [
            (waits, "tests 1")
        ]


async def test_a_session_that_only_listed_tools_is_deleted_after_minutes() -> None:
    async with an_endpoint_client() as client:
        looked, called = await client.join(), await client.join()
        for method in ("ping", "tools/list", "resources/list"):
            await client.ask("POST", body=client.message(method), mcp_session_id=looked)
        await client.value(called, "list_timers")
        await client.clock.advance(300 + 61)
        assert [await client.status(one) for one in (looked, called)] == [404, 200]


async def test_the_repr_of_the_endpoint_and_of_its_connections_shows_their_state() -> None:
    async with an_endpoint_client() as client:
        shown = "<HttpEndpoint open connections={} <StatelessEndpoint <Requests stateless-http running=0>>>"
        assert repr(client.endpoint) == shown.format(0)
        connection_id = await client.join()
        assert repr(client.endpoint) == shown.format(1)
        (connection,) = client.endpoint._connections
        state = "2025-11-25 posts={0} gets=0 <Requests http running={0}>"
        assert repr(connection) == f"<HandshakeConnection {state.format(0)}>"
        call = client.call("execute_tool", server="one", tool="slow")
        _, calling = await client.start("POST", call, mcp_session_id=connection_id)
        assert repr(connection) == f"<HandshakeConnection {state.format(1)}>"
        calling.cancel()
        assert await ended(calling)
        client.endpoint.drain()
        assert repr(client.endpoint) == shown.format(1).replace("open", "draining")


async def test_whitespace_around_a_protocol_version_is_ignored() -> None:
    async with an_endpoint_client() as client:
        connection = await client.join(mcp_protocol_version="2025-11-25 ")
        assert await client.status(connection, mcp_protocol_version=" 2025-11-25\t") == 200
        told = {"jsonrpc": "2.0", "method": "notifications/x"}
        assert (await client.ask("POST", body=told, mcp_protocol_version="2026-07-28 ")).status == 202
        assert (await client.ask("POST", body=told, mcp_protocol_version=" ")).status == 400  # as without it


async def test_cors_allows_every_header_that_the_endpoint_reads() -> None:
    async with an_endpoint_client() as client:
        answered = await client.ask("OPTIONS", origin="http://localhost:3000")
        allowed = answered.headers["access-control-allow-headers"].split(", ")
        assert {"mcp-session-id", VERSION_HEADER, METHOD_HEADER, NAME_HEADER, *TRACE_KEYS} <= set(allowed)
        assert len(allowed) == len(set(allowed))
