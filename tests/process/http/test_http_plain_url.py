"""Callers of 2026-07-28 at the plain address: their default sessions, and the callers that must name one."""

import asyncio
import json

import pytest
from mcp import Client
from mcp_types import Implementation

from support.backends.web_backend import WebBackend
from support.callers.http_process import BOUND, HttpProcess, ModernCaller, http_process

pytestmark = pytest.mark.asyncio(loop_scope="module")
EVENTS = {"notifications": {"resourceSubscriptions": ["emceepee://events"]}}


async def timers(caller: ModernCaller) -> list[str]:
    return [timer["message"] for timer in (await caller.value("list_timers"))["timers"]]


async def note(caller: ModernCaller, message: str) -> None:
    await caller.value("set_timer", duration_ms=60_000, message=message)


async def is_told_to_name_one(caller: ModernCaller) -> bool:
    error = await caller.error("list_timers")
    said = all(word in error["message"] for word in ("open_session", "Emceepee-Session", "?session="))
    return said and error["code"] == "TOOL_ERR_SESSION_NOT_FOUND"


async def test_changes_of_one_request_are_visible_in_the_next(endpoint: HttpProcess, backend: WebBackend) -> None:
    caller = endpoint.modern(client="one after another")
    await caller.value("add_server", name="web", url=backend.url)
    assert [server["name"] for server in (await caller.value("list_servers"))["servers"]] == ["web"]
    echo = await caller.call("execute_tool", server="web", tool="echo", args={"n": 1})
    assert echo["content"][0]["text"] == '{"n": 1}'
    await caller.value("remove_server", name="web")


@pytest.mark.parametrize("mode", ["auto", "legacy", "2026-07-28"])
async def test_the_python_sdk_needs_only_the_plain_address(
    endpoint: HttpProcess, backend: WebBackend, mode: str
) -> None:
    async with asyncio.timeout(BOUND), Client(endpoint.url, mode=mode) as client:
        added = await client.call_tool("add_server", {"name": mode, "url": backend.url})
        assert not added.is_error, added
        listed = await client.call_tool("list_servers", {})
        assert listed.structured_content is not None
        assert [server["status"] for server in listed.structured_content["servers"]] == ["connected"]
        await client.call_tool("remove_server", {"name": mode})


async def test_two_windows_of_a_client_share_a_session_and_two_clients_do_not(endpoint: HttpProcess) -> None:
    first, second, other = endpoint.modern(client="ide"), endpoint.modern(client="ide"), endpoint.modern(client="chat")
    await note(first, "mine")
    assert (await timers(first), await timers(second), await timers(other)) == (["mine"], ["mine"], [])
    unnamed = [endpoint.modern(client=None), endpoint.modern(client=7), endpoint.modern(client="")]
    await note(unnamed[0], "nobody's")
    assert [await timers(caller) for caller in unnamed] == [["nobody's"]] * 3
    assert await timers(first) == ["mine"]


async def test_two_programs_with_the_same_sdk_have_separate_sessions(endpoint: HttpProcess) -> None:
    for name, found in (("first program", 1), ("second program", 1), ("first program", 2)):
        async with Client(endpoint.url, client_info=Implementation(name=name, version="1")) as client:
            await client.call_tool("set_timer", {"duration_ms": 60_000, "message": "x"})
            listed = await client.call_tool("list_timers", {})
        assert listed.structured_content is not None
        assert len(listed.structured_content["timers"]) == found


async def test_a_name_or_a_handle_separates_sessions_that_would_be_shared(endpoint: HttpProcess) -> None:
    plain, named = endpoint.modern(client="parted"), endpoint.modern(client="parted", emceepee_session="parted")
    handle = (await plain.value("open_session"))["session"]
    await note(plain, "usual")
    assert await timers(named) == []
    assert (await plain.value("list_timers", session=handle))["timers"] == []


async def test_opening_a_session_by_handle_opens_no_default_session() -> None:
    limits = json.dumps({"limits": {"sessions_per_principal": 1}})
    async with http_process(env={"EMCEEPEE_CONFIG": limits}) as endpoint:
        caller = endpoint.modern()
        handle = (await caller.value("open_session"))["session"]
        await caller.value("set_timer", duration_ms=60_000, message="mine", session=handle)
        assert len((await caller.value("list_timers", session=handle))["timers"]) == 1
        assert await timers(caller) == []
        gone = await caller.error("list_timers", session=handle)
        assert gone["code"] == "TOOL_ERR_SESSION_NOT_FOUND", "there was room for one only, so it had none beside it"


async def test_a_listener_receives_events_of_the_session_that_unnamed_calls_use(endpoint: HttpProcess) -> None:
    caller = endpoint.modern(client="listener")
    async with caller.post("subscriptions/listen", EVENTS) as response:
        await response.content.readuntil(b"\n\n")
        await caller.value("set_timer", duration_ms=1, message="ring")
        async with asyncio.timeout(BOUND):
            assert b"notifications/resources/updated" in await response.content.readuntil(b"\n\n")


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "http://localhost:3000"},
        {"x_forwarded_for": "203.0.113.9"},
        {"x_forwarded_proto": "https"},
        {"forwarded": "for=203.0.113.9"},
        {"via": "1.1 proxy"},
        {"cf_connecting_ip": "203.0.113.9"},
        {"x_client_ip": "127.0.0.1"},
    ],
)
async def test_an_unknown_client_has_to_name_a_session(endpoint: HttpProcess, headers: dict[str, str]) -> None:
    assert await is_told_to_name_one(endpoint.modern(**headers))
    named = endpoint.modern(emceepee_session="somebody's", **headers)
    assert await timers(named) == []


async def test_a_caller_with_another_host_name_has_to_name_a_session() -> None:
    async with http_process("--host", "0.0.0.0", "--insecure") as endpoint:
        assert await timers(endpoint.modern()) == []
        assert await is_told_to_name_one(endpoint.modern(host="192.0.2.7:8080"))


async def test_the_operator_can_require_a_session_name_of_every_caller() -> None:
    async with http_process("--require-session", "--token", "one") as endpoint:
        assert await is_told_to_name_one(endpoint.modern(authorization="Bearer one"))
        assert await timers(endpoint.modern(authorization="Bearer one", emceepee_session="mine")) == []
    async with http_process("--require-session") as endpoint:
        assert await is_told_to_name_one(endpoint.modern())


async def test_an_authenticated_caller_has_its_own_session_even_behind_a_proxy() -> None:
    async with http_process("--token", "ada=one", "--token", "ben=two") as endpoint:
        ada, ben = [{"authorization": f"Bearer {token}", "x_forwarded_for": "203.0.113.9"} for token in ("one", "two")]
        await note(endpoint.modern(**ada), "ada's")
        assert await timers(endpoint.modern(**ada)) == ["ada's"]
        assert await timers(endpoint.modern(**ben)) == []
        assert await timers(endpoint.modern(client="another", **ada)) == []


async def test_a_request_that_names_two_sessions_is_rejected(endpoint: HttpProcess) -> None:
    caller = endpoint.modern()
    message = caller.message("tools/call", {"name": "list_timers"})
    pairs = [*caller.sent_headers(message).items(), ("emceepee-session", "a"), ("emceepee-session", "b")]
    async with endpoint.http.post(endpoint.url, json=message, headers=pairs) as response:
        assert response.status == 400
        assert "emceepee-session" in (await response.json())["error"]["message"]
