"""The replayed server in conversations of both eras."""

import asyncio

import pytest

from support.fakes.clock import FakeClock
from support.recordings import ReplayClient, call, notice, question, recording, result

ERAS = pytest.mark.parametrize("is_modern", [False, True], ids=["handshake", "2026-07-28"])
TEXT = [{"type": "text", "text": "done"}]
DIG = recording(
    call(1, 0, "dig"),
    notice(1, 1, "progress", progress=1, total=2),
    notice(1, 1.5, "message", level="info", data="deep"),
    notice(1, 2, "tools/list_changed"),
    result(1, 4, "done"),
)
SHIP = recording(
    call(1, 0, "ship"),
    question(1, 1, "q1", "Where?"),
    {"at": 2, "type": "answer", "id": "q1", "result": {"action": "accept"}},
    question(1, 3, "q2", "Sure?"),
    {"at": 4, "type": "answer", "id": "q2", "result": {"action": "accept"}},
    result(1, 5, "done"),
)


async def test_a_replay_introduces_itself_like_the_recorded_server() -> None:
    old = ReplayClient(DIG, is_modern=False)
    assert await old.initialize() == {
        "protocolVersion": "2025-11-25",
        "serverInfo": {"name": "shop", "version": "3"},
        "capabilities": {"tools": {"listChanged": True}, "logging": {}},
        "instructions": "Buy something.",
    }
    new = ReplayClient(DIG, is_modern=True)
    hello = (await new.ask("server/discover"))["result"]
    assert (hello["supportedVersions"], hello["instructions"]) == (["2026-07-28"], "Buy something.")
    assert hello["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "shop"


async def test_a_replay_answers_an_older_client_in_its_version_and_an_unknown_one_in_the_recorded_version() -> None:
    client = ReplayClient(DIG, is_modern=False)
    for asked, given in (("2024-11-05", "2024-11-05"), ("2099-01-01", "2025-11-25"), (7, "2025-11-25")):
        answer = await client.ask("initialize", {"protocolVersion": asked, "capabilities": {}})
        assert answer["result"]["protocolVersion"] == given


@ERAS
async def test_a_replayed_call_gets_its_result_and_its_progress(*, is_modern: bool) -> None:
    client = ReplayClient(DIG, is_modern=is_modern)
    params = {"name": "dig", "arguments": {}, "_meta": {"progressToken": "mine"}}
    answer = await client.ask("tools/call", params)
    assert answer["result"]["content"] == TEXT
    assert ("resultType" in answer["result"]) == is_modern
    progress = [message["params"] for message in client.heard if message.get("method") == "notifications/progress"]
    assert progress == [{"progress": 1, "total": 2, "progressToken": "mine"}]


async def test_a_replay_sends_progress_and_log_messages_only_on_request() -> None:
    old, new = ReplayClient(DIG, is_modern=False), ReplayClient(DIG, is_modern=True)
    await old.call("dig")
    await new.call("dig")
    assert old.methods() == ["notifications/message", "notifications/tools/list_changed"]
    assert new.methods() == []
    meta = {"io.modelcontextprotocol/logLevel": "debug"}
    await new.ask("tools/call", {"name": "dig", "arguments": {}, "_meta": meta})
    assert new.methods() == ["notifications/message"]


async def test_a_replay_sends_changes_to_listeners() -> None:
    client = ReplayClient(DIG, is_modern=True)
    listening = client.begin("subscriptions/listen", {"notifications": {"toolsListChanged": True}})
    await client.settle()
    assert client.methods() == ["notifications/subscriptions/acknowledged"]
    await client.call("dig")
    assert client.methods()[1:] == ["notifications/tools/list_changed"]
    meta = client.heard[1]["params"]["_meta"]
    assert meta == {"io.modelcontextprotocol/subscriptionId": 1}
    client.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    await asyncio.wait({listening}, timeout=5)
    assert listening.cancelled()
    await client.call("dig")
    assert len(client.methods()) == 2


async def test_replay_listeners_of_two_clients_with_the_same_id_both_get_changes() -> None:
    one, other = ReplayClient(DIG, is_modern=True), ReplayClient(DIG, is_modern=True)
    other.conversation = one.conversation
    wish = {"notifications": {"toolsListChanged": True}}
    first, second = one.begin("subscriptions/listen", wish), other.begin("subscriptions/listen", wish)
    await one.settle()
    await one.call("dig")
    assert [client.methods()[1:] for client in (one, other)] == [["notifications/tools/list_changed"]] * 2
    second.cancel()
    await asyncio.wait({second}, timeout=5)
    await one.call("dig")
    assert [len(client.methods()) for client in (one, other)] == [3, 2]
    one.conversation.end_listens()
    await asyncio.wait({first}, timeout=5)
    assert first.cancelled()


async def test_in_the_handshake_era_a_replay_asks_the_client_during_the_call() -> None:
    client = ReplayClient(SHIP, is_modern=False)
    await client.initialize(elicitation={})
    calling = client.begin("tools/call", {"name": "ship", "arguments": {}})
    for words in ("Where?", "Sure?"):
        await client.settle()
        asked = client.heard[-1]
        assert (asked["method"], asked["params"]["message"]) == ("elicitation/create", words)
        client.receive({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}})
    await asyncio.wait_for(calling, 5)
    assert client.heard[-1]["result"] == {"content": TEXT}


async def test_in_the_modern_era_a_replay_asks_in_the_result_and_the_call_is_repeated() -> None:
    client = ReplayClient(SHIP, is_modern=True)
    params = {"name": "ship", "arguments": {}}
    for key in ("q1", "q2"):
        answer = (await client.ask("tools/call", params, elicitation={}))["result"]
        assert answer["resultType"] == "input_required"
        assert list(answer["inputRequests"]) == [key]
        params = params | {"inputResponses": {key: {"action": "cancel"}}, "requestState": answer["requestState"]}
    answer = (await client.ask("tools/call", params, elicitation={}))["result"]
    assert (answer["resultType"], answer["content"]) == ("complete", TEXT)


@pytest.mark.parametrize("state", ["x", "emceepee-replay:0", "emceepee-replay:9:1", "emceepee-replay:0:99", 7, {}])
async def test_a_replay_rejects_a_request_state_that_it_did_not_issue(state: object) -> None:
    client = ReplayClient(SHIP, is_modern=True)
    params = {"name": "ship", "arguments": {}, "requestState": state, "inputResponses": {}}
    answer = await client.ask("tools/call", params, elicitation={})
    assert "requestState does not belong to this replay" in answer["error"]["message"]


@ERAS
async def test_a_replay_client_without_elicitation_gets_the_result_without_questions(*, is_modern: bool) -> None:
    client = ReplayClient(SHIP, is_modern=is_modern)
    assert (await client.call("ship"))["result"]["content"] == TEXT
    assert client.notes == ["elicitation/create was left out: the client does not say that it can answer it"] * 2


async def test_a_replay_asks_nothing_over_a_channel_without_questions() -> None:
    client = ReplayClient(SHIP, is_modern=False)
    await client.initialize(elicitation={})
    client.takes_questions = False
    assert (await client.call("ship"))["result"]["content"] == TEXT
    assert len(client.notes) == 2


async def test_a_replayed_call_takes_its_recorded_time_on_request() -> None:
    clock = FakeClock()
    client = ReplayClient(DIG, is_modern=False, clock=clock)
    calling = client.begin("tools/call", {"name": "dig", "arguments": {}})
    await client.settle()
    assert client.heard == []
    await clock.advance(1.5)
    assert client.methods() == ["notifications/message"]
    await clock.advance(2)
    assert not calling.done()
    await clock.advance(0.5)
    await asyncio.wait_for(calling, 5)
    assert client.heard[-1]["result"] == {"content": TEXT}


async def test_recorded_messages_after_a_call_follow_its_response() -> None:
    played = recording(call(1, 0, "buy"), result(1, 1, "done"), notice(None, 2, "resources/updated", uri="shop://a"))
    client = ReplayClient(played, is_modern=False)
    await client.call("buy")
    await client.settle()
    assert [message.get("method", "answer") for message in client.heard] == [
        "answer",
        "notifications/resources/updated",
    ]


async def test_a_cancelled_replay_call_is_not_answered() -> None:
    client = ReplayClient(SHIP, is_modern=False)
    await client.initialize(elicitation={})
    calling = client.begin("tools/call", {"name": "ship", "arguments": {}})
    await client.settle()
    heard = len(client.heard)
    client.receive({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 2}})
    await asyncio.wait({calling}, timeout=5)
    assert (calling.cancelled(), len(client.heard)) == (True, heard)


async def test_recorded_errors_are_replayed_and_unrecorded_requests_get_an_error() -> None:
    error = {"code": -32000, "message": "sold out", "data": {"item": 3}}
    played = recording(call(1, 0, "buy"), {"at": 1, "type": "error", "id": 1, "error": error})
    client = ReplayClient(played, is_modern=False)
    assert (await client.call("buy"))["error"] == error
    assert "Not recorded" in (await client.call("sell"))["error"]["message"]
    assert "Not recorded" in client.notes[0]


@ERAS
async def test_requests_without_effects_always_succeed_in_a_replay(*, is_modern: bool) -> None:
    client = ReplayClient(DIG, is_modern=is_modern)
    for method in ("ping", "logging/setLevel", "resources/subscribe"):
        assert "result" in await client.ask(method, {"level": "debug", "uri": "a"})


async def test_a_replay_rejects_unknown_versions_and_invalid_requests() -> None:
    client = ReplayClient(DIG, is_modern=False)
    meta = {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}
    assert (await client.ask("tools/list", {"_meta": meta}))["error"]["data"]["supported"] == ["2026-07-28"]
    client.receive({"jsonrpc": "1.0", "id": 3})
    assert client.heard[-1]["error"]["code"] == -32600


async def test_each_replayed_conversation_has_its_own_order() -> None:
    played = recording(call(1, 0, "n"), result(1, 0, "one"), call(2, 0, "n"), result(2, 0, "two"))
    one, other = ReplayClient(played, is_modern=True), ReplayClient(played, is_modern=True)
    texts = [(await client.call("n"))["result"]["content"][0]["text"] for client in (one, other, one)]
    assert texts == ["one", "one", "two"]


async def test_a_new_handshake_restarts_the_replay() -> None:
    played = recording(call(1, 0, "n"), result(1, 0, "one"), call(2, 0, "n"), result(2, 0, "two"))
    client = ReplayClient(played, is_modern=False)
    texts = []
    for _ in range(2):
        await client.initialize()
        texts += [(await client.call("n"))["result"]["content"][0]["text"] for _ in range(2)]
    assert texts == ["one", "two", "one", "two"]
