"""The time at which servers are connected over HTTP: a client that only lists tools starts none."""

import asyncio
import json

import pytest

from support.fakes.clock import settle
from support.in_process.http_endpoint import EndpointClient, an_endpoint_client, ended

ALL = ["one", "other1", "other2"]
THROUGH_A_PROXY = {"x_forwarded_for": "203.0.113.7"}


async def call(place: EndpointClient, connection: str, tool: str, /, **arguments: str) -> None:
    await place.ask("POST", body=place.call(tool, **arguments), mcp_session_id=connection)
    await settle()


async def call_in_2026(place: EndpointClient, tool: str, /, **arguments: str) -> None:
    params = {"name": tool, "arguments": arguments}
    await place.start_modern("tools/call", params, emceepee_session="desk")


async def test_a_handshake_session_connects_no_server_before_the_first_tool_call_and_then_all() -> None:
    async with an_endpoint_client(others=2) as place:
        connection = await place.join()
        await place.ask(
            "POST", body={"jsonrpc": "2.0", "method": "notifications/initialized"}, mcp_session_id=connection
        )
        for method in ("ping", "tools/list", "resources/list", "resources/templates/list"):
            answered = await place.ask("POST", body=place.message(method), mcp_session_id=connection)
            assert answered.status == 200
        await settle()
        assert place.installation.connected == []
        await call(place, connection, "list_timers")
        assert place.installation.connected == ALL


@pytest.mark.parametrize("era", ["handshake", "2026-07-28"])
@pytest.mark.parametrize("tool", ["list_tools", "list_resources", "list_prompts", "codemode_search"])
async def test_the_first_list_over_http_names_connecting_servers_and_the_next_list_includes_them(
    era: str, tool: str
) -> None:
    arguments = {"query": "echo"} if tool == "codemode_search" else {}
    async with an_endpoint_client(others=2, list_patience_seconds=0.05) as place:
        late = place.installation.backends["other1"].opens = asyncio.get_running_loop().create_future()

        async def missing() -> list[str]:
            if era == "handshake":
                found = await place.value(connection, tool, **arguments)
            else:
                params = {"name": tool, "arguments": arguments}
                answered, asking = await place.start_modern("tools/call", params, emceepee_session="desk")
                assert await ended(asking)
                found = json.loads(answered.body)["result"]["structuredContent"]
            return [error["server"] for error in found.get("errors", [])]

        connection = await place.join() if era == "handshake" else ""
        assert await missing() == ["other1"]
        late.set_result(None)
        await settle()
        assert await missing() == []


async def test_a_handshake_session_of_a_remote_caller_connects_the_server_that_a_call_names() -> None:
    async with an_endpoint_client(others=2) as place:
        connection = await place.join(**THROUGH_A_PROXY)
        await call(place, connection, "list_servers")
        assert place.installation.connected == []
        await call(place, connection, "list_tools", server="other2")
        assert place.installation.connected == ["other2"]
        await call(place, connection, "list_tools", server="other")
        assert place.installation.connected == ["other1", "other2"]


async def test_a_session_of_2026_07_28_connects_the_server_that_a_call_names() -> None:
    async with an_endpoint_client(others=2) as place:
        await call_in_2026(place, "list_servers")
        assert place.installation.connected == []
        await call_in_2026(place, "execute_tool", server="one", tool="slow")
        assert place.installation.connected == ["one"]
        await call_in_2026(place, "list_tools")
        assert place.installation.connected == ALL


async def test_a_session_with_a_handle_connects_the_server_that_a_call_names() -> None:
    async with an_endpoint_client(others=2) as place:
        connection = await place.join()
        handle = (await place.value(connection, "open_session"))["session"]
        await call(place, connection, "list_servers", session=handle)
        assert place.installation.connected == []
        await call(place, connection, "list_tools", server="one", session=handle)
        assert place.installation.connected == ["one"]


@pytest.mark.parametrize("is_open", [True, False])
async def test_a_session_of_2026_07_28_with_a_listener_stays_awake(is_open: bool) -> None:
    async with an_endpoint_client() as place:
        await call_in_2026(place, "list_tools")
        (session,) = place.sessions()
        if is_open:
            listen = {"notifications": {"resourceSubscriptions": ["emceepee://events"]}}
            _, listening = await place.start_modern("subscriptions/listen", listen, emceepee_session="desk")
        await place.clock.advance(4 * 3600)
        assert session.is_awake is is_open
        if is_open:
            listening.cancel()
            await settle()
            await place.clock.advance(3600)
            assert not session.is_awake
