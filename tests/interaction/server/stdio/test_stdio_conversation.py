import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject
from emceepee.wire.line_splitter import TooLongLine
from support.fakes.clock import settle
from support.in_process.stdio_client import ENVELOPE, StdioClient, a_stdio_client
from support.sessions.replies import backend_part


@pytest.fixture
async def client() -> AsyncIterator[StdioClient]:
    async with a_stdio_client() as made:
        await made.open()
        yield made


@pytest.fixture
async def fresh() -> AsyncIterator[StdioClient]:
    """A conversation in which nothing was said yet."""
    async with a_stdio_client() as made:
        yield made


def code(message: Any) -> tuple[Any, int]:
    return message["id"], message["error"]["code"]


def a_request(key: Any, method: str = "ping", **params: Any) -> JsonObject:
    return {"jsonrpc": "2.0", "id": key, "method": method, **({"params": params} if params else {})}


@pytest.mark.parametrize("line", [b"{oops", b"hello", b"\xff\xfe", b"[" * 100_000])
async def test_invalid_json_on_stdin_is_a_parse_error_and_the_conversation_continues(
    client: StdioClient, line: bytes
) -> None:
    await client.say(line)
    assert code(await client.next()) == (None, -32700)
    await client.ask("ping", 2)
    assert await client.next() == {"jsonrpc": "2.0", "id": 2, "result": {}}


@pytest.mark.parametrize("value", [5, "x", None, True, {}, {"id": 1, "method": "ping"}, {"jsonrpc": "2.0"}])
async def test_json_that_is_not_a_message_is_an_invalid_request(client: StdioClient, value: Any) -> None:
    await client.say(encode(value))
    assert (await client.next())["error"]["code"] == -32600


async def test_a_line_over_the_size_limit_is_an_invalid_request(client: StdioClient) -> None:
    await client.say(TooLongLine(b"xxx", b"xxx"))
    assert code(await client.next()) == (None, -32600)
    await client.say(TooLongLine(b'{"jsonrpc":"2.0","id":"big","method":"ping","params":{"x', b'x"}}'))
    assert code(await client.next()) == ("big", -32600)


async def test_an_unknown_method_is_reported_as_not_found(client: StdioClient) -> None:
    await client.ask("no/such", 5)
    assert code(await client.next()) == (5, -32601)


async def test_an_unknown_tool_is_a_protocol_error(client: StdioClient) -> None:
    await client.call("list_toolz", 5)
    assert code(await client.next()) == (5, -32602)


async def test_a_tool_call_is_answered_under_its_request_id(client: StdioClient) -> None:
    await client.call("list_servers", "abc")
    answer = await client.next()
    assert answer["id"] == "abc"
    assert answer["result"]["structuredContent"]["servers"][0]["name"] == "demo"


async def test_the_result_of_a_backend_passes_through_unchanged(client: StdioClient) -> None:
    result = {"content": [{"type": "hologram", "x": None}], "structuredContent": None, "zz": {"a": [None]}}
    client.backend.answers["tools/call"] = lambda _: result
    await client.call("execute_tool", server="demo", tool="echo")
    assert backend_part((await client.next())["result"]) == result


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (b"[" * 300 + b"]" * 300, "deeper than 200 levels"),
        (b"1" * 5000, "more than 4300 digits"),
        (b'"a\tb"', "not JSON"),
    ],
    ids=["deep", "digits", "a raw tab"],
)
async def test_an_invalid_request_is_rejected_under_its_own_id(client: StdioClient, value: bytes, words: str) -> None:
    await client.conversation.receive(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"a":%b}}' % value)
    answer = await client.next()
    assert code(answer) == (7, -32700)
    assert words in answer["error"]["message"]


async def test_responses_and_notifications_from_the_caller_get_no_response(client: StdioClient) -> None:
    await client.say({"jsonrpc": "2.0", "id": 1, "result": {}})
    await client.say({"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "Parse error"}})
    await client.tell("notifications/roots/list_changed")
    await client.tell("no/such/thing", a=1)
    await settle()
    assert client.heard == []


async def test_a_slow_request_does_not_delay_another_request(client: StdioClient) -> None:
    await client.call("execute_tool", 1, server="demo", tool="slow")
    asked = await client.backend.next_asked()
    await client.ask("ping", 2)
    assert (await client.next())["id"] == 2
    asked.reply(content=[])
    answer = await client.next()
    assert (answer["id"], backend_part(answer["result"])) == (1, {"content": []})


async def test_a_canceled_request_gets_no_response_and_its_backend_call_is_canceled(client: StdioClient) -> None:
    await client.call("execute_tool", 1, server="demo", tool="slow")
    asked = await client.backend.next_asked()
    await client.tell("notifications/cancelled", requestId=1, reason="enough")
    await settle()
    assert client.backend.cancelled == [asked]
    await client.ask("ping", 2)
    assert (await client.next())["id"] == 2
    assert client.heard == []


async def test_numeric_and_text_request_ids_are_distinct(client: StdioClient) -> None:
    await client.call("execute_tool", 1, server="demo", tool="slow", args={"n": 1})
    first = await client.backend.next_asked()
    await client.call("execute_tool", "1", server="demo", tool="slow", args={"n": 2})
    second = await client.backend.next_asked()
    await client.tell("notifications/cancelled", requestId="1")
    await settle()
    assert client.backend.cancelled == [second]
    first.reply(content=[])
    answer = await client.next()
    assert answer["id"] == 1
    assert type(answer["id"]) is int


async def test_a_reused_request_id_can_still_be_canceled_after_the_first_request_was_answered(
    client: StdioClient,
) -> None:
    await client.call("execute_tool", 1, server="demo", tool="slow")
    first = await client.backend.next_asked()
    await client.call("execute_tool", 1, server="demo", tool="slow")
    second = await client.backend.next_asked()
    first.reply(content=[])
    assert (await client.next())["id"] == 1
    await settle()
    await client.tell("notifications/cancelled", requestId=1)
    await settle()
    assert client.backend.cancelled == [second]


@pytest.mark.parametrize("key", [99, None, [], {}, 1.5, "1"])
async def test_canceling_an_unknown_request_has_no_effect(client: StdioClient, key: Any) -> None:
    await client.call("execute_tool", 1, server="demo", tool="slow")
    asked = await client.backend.next_asked()
    await client.tell("notifications/cancelled", requestId=key)
    await client.say({"jsonrpc": "2.0", "method": "notifications/cancelled"})
    await settle()
    asked.reply(content=[])
    assert (await client.next())["id"] == 1


async def test_progress_is_reported_under_the_progress_token_of_the_caller(client: StdioClient) -> None:
    params = {
        "name": "execute_tool",
        "arguments": {"server": "demo", "tool": "slow"},
        "_meta": {"progressToken": "mine"},
    }
    await client.say(a_request(1, "tools/call", **params))
    asked = await client.backend.next_asked()
    client.backend.link.listener.handle_notification(
        "notifications/progress", {"progressToken": 3, "progress": 1}, asked.origin
    )
    assert await client.next() == {
        "jsonrpc": "2.0",
        "method": "notifications/progress",
        "params": {"progress": 1, "progressToken": "mine"},
    }
    asked.reply(content=[])
    assert (await client.next())["id"] == 1


async def test_progress_is_not_sent_to_a_caller_without_a_progress_token(client: StdioClient) -> None:
    await client.call("execute_tool", 1, server="demo", tool="slow")
    asked = await client.backend.next_asked()
    client.backend.link.listener.handle_notification("notifications/progress", {"progress": 1}, asked.origin)
    asked.reply(content=[])
    assert (await client.next())["id"] == 1


async def test_before_the_handshake_a_tool_call_fails_but_a_ping_is_answered(fresh: StdioClient) -> None:
    await fresh.call("list_servers", 1)
    assert code(await fresh.next()) == (1, -32600)
    await fresh.ask("ping", 2)
    assert (await fresh.next())["result"] == {}
    await fresh.open()
    await fresh.call("list_servers", 3)
    assert "result" in await fresh.next()


async def test_requests_sent_right_after_the_handshake_find_it_complete(fresh: StdioClient) -> None:
    await fresh.open()
    await fresh.call("list_servers", 2)
    assert "result" in await fresh.next()


async def test_a_caller_of_2026_07_28_needs_no_handshake_and_stays_in_that_era(fresh: StdioClient) -> None:
    await fresh.ask("tools/call", 1, name="list_servers", _meta=ENVELOPE)
    answer = await fresh.next()
    assert answer["result"]["resultType"] == "complete"
    await fresh.ask(
        "initialize", 2, protocolVersion="2025-11-25", capabilities={}, clientInfo={"name": "t", "version": "1"}
    )
    assert code(await fresh.next()) == (2, -32022)
    await fresh.call("list_servers", 3)
    assert (await fresh.next())["error"]["code"] < 0


async def test_the_session_bears_the_name_that_its_caller_sends_in_either_era(fresh: StdioClient) -> None:
    await fresh.ask("ping")
    await fresh.next()
    labels = [fresh.scene.session.profile.label]
    await fresh.open()
    labels.append(fresh.scene.session.profile.label)
    async with a_stdio_client() as modern:
        await modern.ask("tools/list", _meta=ENVELOPE)
        await modern.next()
        labels.append(modern.scene.session.profile.label)
    assert labels == [None, "t 1", "tests 1"]


async def test_a_caller_of_the_handshake_era_stays_in_that_era(client: StdioClient) -> None:
    await client.ask("tools/call", 1, name="list_servers", _meta=ENVELOPE)
    assert code(await client.next()) == (1, -32600)


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
async def test_a_batch_is_rejected_in_every_version_without_batches(fresh: StdioClient, version: str) -> None:
    await fresh.open(version)
    await fresh.say([a_request(1)])
    assert code(await fresh.next()) == (None, -32600)


async def test_a_batch_before_the_handshake_is_rejected(fresh: StdioClient) -> None:
    await fresh.say([a_request(1)])
    assert code(await fresh.next()) == (None, -32600)


async def test_a_batch_is_answered_with_a_batch_in_versions_with_batches(fresh: StdioClient) -> None:
    await fresh.open("2025-03-26")
    await fresh.say(
        [
            a_request(1),
            {"jsonrpc": "2.0", "method": "notifications/roots/list_changed"},
            a_request("2", "no/such"),
            5,
            {"jsonrpc": "2.0", "id": 9, "result": {}},
        ]
    )
    answers = await fresh.next()
    assert sorted((str(answer["id"]), "error" in answer) for answer in answers) == [
        ("1", False),
        ("2", True),
        ("None", True),
    ]


async def test_a_batch_of_notifications_gets_no_response_and_an_empty_batch_is_invalid(fresh: StdioClient) -> None:
    await fresh.open("2025-03-26")
    await fresh.say([{"jsonrpc": "2.0", "method": "notifications/roots/list_changed"}])
    await settle()
    assert fresh.heard == []
    await fresh.say([])
    assert code(await fresh.next()) == (None, -32600)


async def test_one_request_of_a_batch_can_be_canceled_while_the_others_are_answered(fresh: StdioClient) -> None:
    await fresh.open("2025-03-26")
    slow = {"name": "execute_tool", "arguments": {"server": "demo", "tool": "slow"}}
    await fresh.say([a_request(1, "tools/call", **slow), a_request(2)])
    await fresh.backend.next_asked()
    await fresh.tell("notifications/cancelled", requestId=1)
    assert await fresh.next() == [{"jsonrpc": "2.0", "id": 2, "result": {}}]
    assert len(fresh.backend.cancelled) == 1


async def test_at_the_end_of_input_requests_that_are_nearly_done_may_finish(client: StdioClient) -> None:
    await client.call("execute_tool", 1, server="demo", tool="slow")
    asked = await client.backend.next_asked()
    finishing = asyncio.create_task(client.conversation.finish(within=5))
    await settle()
    assert not finishing.done()
    asked.reply(content=[])
    async with asyncio.timeout(5):
        await finishing
    assert [message["id"] for message in client.heard] == [1]


async def test_at_the_end_of_input_the_process_does_not_wait_for_endless_requests(client: StdioClient) -> None:
    await client.call("execute_tool", 1, server="demo", tool="slow")
    asked = await client.backend.next_asked()
    async with asyncio.timeout(5):
        await client.conversation.finish(within=0.01)
        await client.conversation.close()
    assert client.heard == []
    assert client.backend.cancelled == [asked]


EVENTS = {"resourceSubscriptions": ["emceepee://events"]}


@pytest.mark.parametrize("is_stopped", [False, True])
async def test_at_the_end_of_input_listeners_get_their_result_without_delay(
    fresh: StdioClient, is_stopped: bool
) -> None:
    await fresh.open("2026-07-28")
    await fresh.ask("subscriptions/listen", "l", notifications=EVENTS)
    acknowledged = await fresh.next()
    async with asyncio.timeout(5):
        if is_stopped:
            await fresh.conversation.drain(finish=60, let_go=60, hurried=asyncio.Event())
        else:
            await fresh.conversation.finish(within=60)
    meta = {"io.modelcontextprotocol/subscriptionId": "l"}
    assert acknowledged["params"]["_meta"] == meta
    assert fresh.heard == [{"jsonrpc": "2.0", "id": "l", "result": {"resultType": "complete", "_meta": meta}}]


async def test_at_the_end_of_input_a_canceled_listener_gets_no_result(fresh: StdioClient) -> None:
    await fresh.open("2026-07-28")
    await fresh.ask("subscriptions/listen", "l", notifications=EVENTS)
    await fresh.next()
    await fresh.tell("notifications/cancelled", requestId="l")
    await fresh.conversation.finish(within=5)
    assert fresh.heard == []


# When servers are connected.

HELLO = a_request(
    "hello",
    "initialize",
    protocolVersion="2025-11-25",
    capabilities={},
    clientInfo={"name": "t", "version": "1"},
)
DISCOVER = a_request("hello", "server/discover", _meta=ENVELOPE)
INITIALIZED: JsonObject = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@pytest.mark.parametrize(
    ("said", "connects"),
    [
        ([DISCOVER], False),
        ([DISCOVER, DISCOVER], False),
        ([HELLO], False),
        ([INITIALIZED], False),
        ([a_request(1, "tools/call", name="list_servers")], False),  # refused: there was no handshake
        ([HELLO, INITIALIZED], True),
        ([HELLO, a_request(1, "tools/list")], True),
        ([HELLO, a_request(1, "tools/call", name="list_servers", arguments={})], True),
        ([a_request(1, "tools/list", _meta=ENVELOPE)], True),
        ([DISCOVER, a_request(1, "tools/list", _meta=ENVELOPE)], True),
        ([HELLO | {"params": HELLO["params"] | {"protocolVersion": "2025-03-26"}}, [a_request(1)]], True),
    ],
)
async def test_servers_are_connected_at_the_first_request_beyond_the_handshake(said: list[Any], connects: bool) -> None:
    async with a_stdio_client(is_awake=False) as client:
        for message in said:
            await client.say(message)
            await settle()
        assert len(client.backend.links) == connects


async def test_the_repr_of_a_conversation_shows_its_era_and_its_running_requests(fresh: StdioClient) -> None:
    assert repr(fresh.conversation) == "<Conversation no era yet <Requests stdio running=0>>"
    await fresh.open()
    await fresh.call("execute_tool", server="demo", tool="slow")
    assert repr(fresh.conversation) == "<Conversation HandshakeEra <Requests stdio running=1>>"
    await fresh.tell("notifications/cancelled", requestId=1)


@pytest.mark.parametrize("is_cancelled", [True, False])
async def test_a_probe_that_a_client_canceled_before_it_was_served_decides_no_era(
    fresh: StdioClient, is_cancelled: bool
) -> None:
    fresh.meta = ENVELOPE
    await fresh.ask("server/discover", "probe")
    fresh.meta = None
    if is_cancelled:
        await fresh.tell("notifications/cancelled", requestId="probe", reason="")
    await fresh.say(HELLO)
    answered = {message["id"]: "result" in message for message in fresh.heard}
    assert answered == ({"hello": True} if is_cancelled else {"probe": False, "hello": True})


async def test_a_client_that_canceled_a_probe_while_the_answer_was_in_flight_may_initialize(fresh: StdioClient) -> None:
    await fresh.say(DISCOVER)
    await settle()
    await fresh.say(HELLO | {"id": "hello again"})
    await fresh.say(INITIALIZED)
    await fresh.call("list_servers", "call")
    await settle()
    assert [message["id"] for message in fresh.heard if "result" in message] == ["hello", "hello again", "call"]


async def test_a_client_that_has_sent_a_request_of_2026_07_28_may_not_initialize(fresh: StdioClient) -> None:
    for message in (DISCOVER, a_request(1, "tools/list", _meta=ENVELOPE), HELLO | {"id": "hello again"}):
        await fresh.say(message)
        await settle()
    assert [message["id"] for message in fresh.heard if "error" in message] == ["hello again"]


UNKNOWN_VERSION = ENVELOPE | {"io.modelcontextprotocol/protocolVersion": "2099-01-01"}
REFUSED = [
    a_request("refused", "tools/call", name="list_servers"),
    a_request("refused", "tools/list"),
    a_request("refused", "tools/list", _meta=UNKNOWN_VERSION),
]


@pytest.mark.parametrize("opening", [HELLO, a_request("hello", "tools/list", _meta=ENVELOPE)])
@pytest.mark.parametrize("refused", REFUSED)
async def test_a_rejected_request_decides_no_era(fresh: StdioClient, refused: JsonObject, opening: JsonObject) -> None:
    for message in (refused, opening):
        await fresh.say(message)
        await settle()
    assert [(message["id"], "result" in message) for message in fresh.heard] == [("refused", False), ("hello", True)]


async def test_a_rejected_request_between_a_probe_and_the_handshake_has_no_effect(fresh: StdioClient) -> None:
    for message in (DISCOVER | {"id": "probe"}, a_request("refused", "tools/list", _meta=UNKNOWN_VERSION), HELLO):
        await fresh.say(message)
        await settle()
    assert [message["id"] for message in fresh.heard if "result" in message] == ["probe", "hello"]
