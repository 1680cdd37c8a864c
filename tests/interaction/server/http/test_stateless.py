"""Listeners of 2026-07-28, and their sessions. The test controls the clock."""

import asyncio
import json
import re

import pytest

from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.wire.protocol import SERVER_INFO_META_KEY, SUBSCRIPTION_ID_META_KEY
from support.callers.emceepee_process import MODERN_META
from support.in_process.asgi_messages import Answered
from support.in_process.http_endpoint import EndpointClient, an_endpoint_client, ended

LISTEN = {"notifications": {"resourceSubscriptions": ["emceepee://events"]}}
HALF_AN_HOUR = 1800


async def a_listener(client: EndpointClient, **headers: str) -> tuple[Answered, "asyncio.Task[None]"]:
    answered, task = await client.start_modern("subscriptions/listen", LISTEN, **headers)
    assert not task.done(), answered.body
    return answered, task


def is_ended_in_order(told: Answered) -> bool:
    """Whether the last message is the result of a listen."""
    acknowledged, last = map(json.loads, re.findall("^data: (.+)$", told.body.decode(), re.MULTILINE))
    meta = acknowledged["params"]["_meta"]
    expected = {"resultType": "complete", "_meta": meta}
    return told.is_whole and last["result"] == expected and meta[SUBSCRIPTION_ID_META_KEY] == last["id"]


@pytest.mark.parametrize("name", ["", "desk"])
async def test_a_session_with_a_listener_does_not_sleep(name: str) -> None:
    async with an_endpoint_client() as client:
        _, listening = await a_listener(client, emceepee_session=name)
        (session,) = client.sessions()
        session.wake()
        await client.clock.advance(2 * HALF_AN_HOUR)
        assert (session.is_awake, session.open_streams) == (True, 1)
        await client.endpoint.directory.end(session)
        assert await ended(listening)
        assert session.open_streams == 0


async def test_a_listener_ends_with_its_session_and_other_listeners_continue() -> None:
    async with an_endpoint_client() as client:
        told, ending = await a_listener(client, emceepee_session="ending")
        _, staying = await a_listener(client, emceepee_session="staying")
        assert await client.endpoint.directory.close(SessionKey("local", KeyKind.NAME, "ending"))
        assert await ended(ending)
        assert (is_ended_in_order(told), staying.done()) == (True, False)
        staying.cancel()
        assert await ended(staying)


async def test_listeners_end_with_a_result_when_the_process_stops() -> None:
    async with an_endpoint_client() as client:
        listening = [await a_listener(client, emceepee_session=name) for name in ("", "desk")]
        client.endpoint.drain()
        assert await ended(*(task for _, task in listening))
        assert [is_ended_in_order(told) for told, _ in listening] == [True, True]


async def test_a_listener_is_promised_only_notifications_about_activity() -> None:
    async with an_endpoint_client() as client:
        discovered, _ = await client.start_modern("server/discover", {})
        assert json.loads(discovered.body)["result"]["capabilities"] == {
            "resources": {"subscribe": True, "listChanged": False},
            "tools": {"listChanged": False},
        }
        uris = ["file:///nope", "emceepee://events", "emceepee://diagrams"]
        lists = {"toolsListChanged": True, "promptsListChanged": True, "resourcesListChanged": True}
        wishes = {"notifications": {**lists, "resourceSubscriptions": uris}}
        told, listening = await client.start_modern("subscriptions/listen", wishes)
        [acknowledged] = map(json.loads, re.findall("^data: (.+)$", told.body.decode(), re.MULTILINE))
        assert acknowledged["params"]["notifications"] == {"resourceSubscriptions": ["emceepee://events"]}
        client.endpoint.drain()
        assert await ended(listening)


async def test_a_listener_without_a_session_is_rejected_with_instructions_for_naming_one() -> None:
    async with an_endpoint_client() as client:
        through_a_proxy = {"x_forwarded_for": "203.0.113.9"}
        answered, listening = await client.start_modern("subscriptions/listen", LISTEN, **through_a_proxy)
        assert await ended(listening)
        assert (answered.status, answered.error["code"]) == (400, -32602)
        assert answered.error["data"]["code"] == "TOOL_ERR_SESSION_NOT_FOUND"
        assert "Emceepee-Session" in answered.error["message"]
        _, named = await a_listener(client, emceepee_session="desk", **through_a_proxy)
        client.endpoint.drain()
        assert await ended(named)


async def test_a_client_that_accepts_no_stream_cannot_listen_and_opens_no_session() -> None:
    async with an_endpoint_client() as client:
        answered, listening = await client.start_modern("subscriptions/listen", LISTEN, accept="application/json")
        assert await ended(listening)
        assert (answered.status, answered.error["code"], client.sessions()) == (406, -32600, [])
        assert json.loads(answered.body)["id"] == 1


@pytest.mark.parametrize(("count", "status"), [(1000, 200), (1001, 400)])
async def test_a_listener_subscribes_to_at_most_a_thousand_resources(count: int, status: int) -> None:
    async with an_endpoint_client() as client:
        wishes = {"notifications": {"resourceSubscriptions": [f"file:///{number}" for number in range(count)]}}
        answered, listening = await client.start_modern("subscriptions/listen", wishes)
        assert answered.status == status
        client.endpoint.drain()
        assert await ended(listening)
        if status == 400:
            assert answered.error["code"] == -32602
            assert "length <= 1000 - at `$.notifications.resourceSubscriptions`" in answered.error["message"]


async def test_unnamed_callers_and_listeners_share_one_session() -> None:
    async with an_endpoint_client() as client:
        _, listening = await a_listener(client)
        called, calling = await client.start_modern("tools/call", {"name": "list_timers", "arguments": {}})
        await calling
        assert json.loads(called.body)["result"]["structuredContent"] == {"timers": []}
        assert len(client.sessions()) == 1
        listening.cancel()
        assert await ended(listening)


async def test_a_listener_appears_in_the_journal_of_its_session_until_it_leaves() -> None:
    async with an_endpoint_client() as client:
        _, listening = await a_listener(client)
        (session,) = client.sessions()
        (span,) = session.journal.since(0)
        assert repr(span) == "<Span protocol subscriptions/listen pending>"
        listening.cancel()
        assert await ended(listening)
        assert repr(span) == "<Span protocol subscriptions/listen cancelled>"


@pytest.mark.parametrize("wrapped", ["=?base64?\xe9?=", "=?base64?/w==?=", "=?base64?bGlzdF90aW1lcnM?="])
async def test_a_wrongly_encoded_name_header_does_not_match_the_name_in_the_request(wrapped: str) -> None:
    async with an_endpoint_client() as client:
        call = client.call("list_timers")
        call["params"]["_meta"] = MODERN_META
        routing = {"mcp_protocol_version": "2026-07-28", "mcp_method": "tools/call", "mcp_name": wrapped}
        answered = await client.ask("POST", body=call, **routing)
        assert (answered.status, answered.error["code"]) == (400, -32020)


async def test_a_call_whose_session_cannot_be_opened_has_an_ordinary_result() -> None:
    async with an_endpoint_client() as client:
        call = {"name": "list_timers", "arguments": {}}
        answered, calling = await client.start_modern("tools/call", call, emceepee_session="x" * 1000)
        assert await ended(calling)
        result = json.loads(answered.body)["result"]
        assert (result["isError"], result["resultType"]) == (True, "complete")
        assert result["_meta"][SERVER_INFO_META_KEY]["name"] == "emceepee"
