"""The recorded server over HTTP, in both eras, without a socket."""

import asyncio
from typing import Any

import pytest

from emceepee.replay import replay_endpoint
from emceepee.replay.replay_endpoint import LARGEST_BODY
from emceepee.server.http.exchange import RETURN_SECONDS
from emceepee.server.stop_signals import FINISH_SECONDS
from support.callers.http_process import HELLO
from support.fakes.clock import FakeClock, settle
from support.in_process.asgi_caller import AsgiRequest
from support.in_process.replay_client import HttpReplayClient, a_replay_endpoint
from support.recordings import call, notice, question, recording, result
from support.waiting import eventually

ERAS = pytest.mark.parametrize("is_modern", [False, True], ids=["handshake", "2026-07-28"])
COUNT = recording(call(1, 0, "n"), result(1, 0, "one"), call(2, 0, "n"), result(2, 0, "two"))
SHIP = recording(call(1, 0, "ship"), question(1, 1, "q1", "Where?"), result(1, 5, "done"))
BUY = recording(
    call(1, 0, "buy"),
    notice(1, 1, "progress", progress=1, total=2),
    result(1, 2, "done"),
    notice(None, 2, "tools/list_changed"),
)
NOTICES = 3000
FLOOD = recording(call(1, 0, "flood"), *(notice(1, 0, "message", data=n) for n in range(NOTICES)), result(1, 0, "done"))
LOGS = {"_meta": {"io.modelcontextprotocol/logLevel": "debug"}}


def methods(request: AsgiRequest) -> list[str]:
    """Return the methods of the messages on a stream, up to the response."""
    return [event.message.get("method", "answer") for event in request.events if event.message is not None]


def asked(request: AsgiRequest) -> bool:
    return b"elicitation/create" in request.answered.body


async def test_each_replay_session_starts_from_the_beginning() -> None:
    async with a_replay_endpoint(COUNT) as endpoint:
        one, other = await HttpReplayClient(endpoint).open(), await HttpReplayClient(endpoint).open()
        texts = [await client.text("n") for client in (one, other, one, one)]
    assert texts == ["one", "one", "two", "two"]


async def test_replay_clients_without_sessions_share_one_order() -> None:
    async with a_replay_endpoint(COUNT) as endpoint:
        one, other = HttpReplayClient(endpoint, is_modern=True), HttpReplayClient(endpoint, is_modern=True)
        session = await HttpReplayClient(endpoint).open()
        texts = [await client.text("n") for client in (one, other, session)]
    assert texts == ["one", "two", "one"]


@ERAS
async def test_replayed_progress_arrives_on_the_stream_of_its_call_and_a_plain_response_as_json(
    *, is_modern: bool
) -> None:
    async with a_replay_endpoint(BUY) as endpoint:
        client = await HttpReplayClient(endpoint, is_modern=is_modern).open()
        bought = await client.call("buy", token="mine").served()
        assert methods(bought) == ["notifications/progress", "answer"]
        assert bought.message["result"]["content"][0]["text"] == "done"
        plain = await client.post("ping").served()
    assert (plain.answered.status, plain.answered.headers["content-type"]) == (200, "application/json")
    assert ("mcp-session-id" in plain.answered.headers) is not is_modern


async def test_a_replayed_question_is_asked_on_the_stream_of_its_call() -> None:
    async with a_replay_endpoint(SHIP) as endpoint:
        client = await HttpReplayClient(endpoint, elicitation={}).open()
        pushed, shipping = client.listen(), client.call("ship")
        await eventually(lambda: asked(shipping))
        question = shipping.events[-1].message
        assert question is not None
        assert question["params"]["message"] == "Where?"
        assert not shipping.answered.is_whole
        await client.tell({"id": question["id"], "result": {"action": "decline"}})
        assert (await shipping.served()).message["result"]["content"][0]["text"] == "done"
        assert pushed.events == []


async def test_without_sessions_a_replayed_question_is_asked_in_the_result_and_the_call_is_repeated() -> None:
    async with a_replay_endpoint(SHIP) as endpoint:
        client = HttpReplayClient(endpoint, is_modern=True, elicitation={})
        asking = (await client.call("ship").served()).message["result"]
        assert (asking["resultType"], list(asking["inputRequests"])) == ("input_required", ["q1"])
        answers = {"inputResponses": {"q1": {"action": "cancel"}}, "requestState": asking["requestState"]}
        again = await client.post("tools/call", {"name": "ship", "arguments": {}, **answers}).served()
    assert again.message["result"]["content"][0]["text"] == "done"


async def test_a_replay_client_that_accepts_no_stream_is_not_asked() -> None:
    notes: list[str] = []
    async with a_replay_endpoint(SHIP, says=notes.append) as endpoint:
        client = await HttpReplayClient(endpoint, elicitation={}).open()
        params = {"name": "ship", "arguments": {}}
        shipped = await client.post("tools/call", params, accept="application/json").served()
    assert shipped.message["result"]["content"][0]["text"] == "done"
    assert len(notes) == 1


async def test_replayed_changes_after_a_call_arrive_on_the_session_stream() -> None:
    async with a_replay_endpoint(BUY) as endpoint:
        client, other = await HttpReplayClient(endpoint).open(), await HttpReplayClient(endpoint).open()
        pushed, elsewhere = client.listen(), other.listen()
        bought = await client.call("buy").served()
        await eventually(lambda: bool(pushed.answered.body))
        assert methods(pushed) == ["notifications/tools/list_changed"]
        assert bought.answered.headers["content-type"] == "application/json"
        await settle()
        assert elsewhere.events == []


async def test_without_sessions_replayed_changes_reach_listeners() -> None:
    async with a_replay_endpoint(BUY) as endpoint:
        client, other = HttpReplayClient(endpoint, is_modern=True), HttpReplayClient(endpoint, is_modern=True)
        wish = {"notifications": {"toolsListChanged": True}}
        listening, gone = (each.post("subscriptions/listen", wish, key=1) for each in (client, other))
        await eventually(lambda: bool(listening.answered.body and gone.answered.body))
        gone.hang_up()
        await gone.served()
        await client.call("buy").served()
        await eventually(lambda: len(listening.events) == 2)
        assert methods(listening) == [
            "notifications/subscriptions/acknowledged",
            "notifications/tools/list_changed",
        ]


async def test_an_interrupted_replay_stream_resumes_at_its_position() -> None:
    async with a_replay_endpoint(SHIP) as endpoint:
        client = await HttpReplayClient(endpoint, elicitation={}).open()
        shipping = client.call("ship")
        await eventually(lambda: asked(shipping))
        first, question = shipping.events
        assert (first.message, question.message is not None) == (None, True)
        shipping.hang_up()
        back = client.listen(first.event_id)
        await eventually(lambda: asked(back))
        await client.tell({"id": (question.message or {})["id"], "result": {"action": "accept", "content": {}}})
        await back.served()
        assert methods(back) == ["elicitation/create", "answer"]
        unknown = await client.listen("nothing").served()
    assert unknown.answered.status == 400


async def test_an_older_replay_client_gets_no_empty_event() -> None:
    async with a_replay_endpoint(BUY) as endpoint:
        client = await HttpReplayClient(endpoint).open("2025-03-26")
        bought = await client.call("buy", token=1).served()
    assert all(event.message is not None for event in bought.events)


async def test_an_abandoned_replay_call_ends_after_a_timeout() -> None:
    clock = FakeClock()
    async with a_replay_endpoint(SHIP, clock) as endpoint:
        client = await HttpReplayClient(endpoint, elicitation={}).open()
        shipping = client.call("ship")
        await clock.advance(1)
        assert asked(shipping)
        shipping.hang_up()
        await clock.advance(RETURN_SECONDS - 0.1)
        assert not shipping.is_served
        await clock.advance(0.2)
        await shipping.served()


async def test_a_replay_call_without_a_session_ends_with_its_connection() -> None:
    clock = FakeClock()
    async with a_replay_endpoint(recording(call(1, 0, "dig"), result(1, 600, "done")), clock) as endpoint:
        digging = HttpReplayClient(endpoint, is_modern=True).call("dig")
        await clock.advance(2)
        digging.hang_up()
        await digging.served()


@ERAS
async def test_a_slow_replay_client_misses_no_message(*, is_modern: bool) -> None:
    async with a_replay_endpoint(FLOOD) as endpoint:
        client = await HttpReplayClient(endpoint, is_modern=is_modern).open()
        flooded = await client.post("tools/call", {"name": "flood", "arguments": {}, **LOGS}).served()
    told = [event.message["params"]["data"] for event in flooded.events if event.message and "params" in event.message]
    assert told == list(range(NOTICES))
    assert flooded.message["result"]["content"][0]["text"] == "done"


async def test_a_cancelled_replay_call_is_answered_with_an_error_over_http() -> None:
    async with a_replay_endpoint(SHIP) as endpoint:
        client = await HttpReplayClient(endpoint, elicitation={}).open()
        shipping = client.call("ship", key="mine")
        await eventually(lambda: asked(shipping))
        await client.tell({"method": "notifications/cancelled", "params": {"requestId": "mine"}})
        assert (await shipping.served()).message["error"]["code"] == -32800


async def test_ending_a_replay_session_ends_its_calls_and_streams() -> None:
    async with a_replay_endpoint(SHIP) as endpoint:
        client, other = [await HttpReplayClient(endpoint, elicitation={}).open() for _ in range(2)]
        pushed, shipping, others = client.listen(), client.call("ship"), other.call("ship")
        await eventually(lambda: asked(shipping) and asked(others))
        assert (await client.raw("DELETE").served()).answered.status == 200
        assert "error" in (await shipping.served()).message
        assert (await pushed.served()).answered.is_whole
        assert not others.answered.is_whole
        for gone in (client.post("ping"), client.listen(), client.raw("DELETE")):
            assert (await gone.served()).answered.status == 404


async def test_a_failed_replay_handshake_opens_no_session() -> None:
    async with a_replay_endpoint(COUNT) as endpoint:
        meta = {"_meta": {"io.modelcontextprotocol/protocolVersion": "2030-01-01"}}
        refused = await HttpReplayClient(endpoint).post("initialize", HELLO | meta).served()
        assert "error" in refused.message
        assert "mcp-session-id" not in refused.answered.headers
        assert endpoint._sessions == {}


async def test_an_unrecorded_request_is_an_error_in_the_format_of_its_era() -> None:
    async with a_replay_endpoint(COUNT) as endpoint:
        old = await HttpReplayClient(endpoint).open()
        new = HttpReplayClient(endpoint, is_modern=True)
        answers = [await client.call("m").served() for client in (old, new)]
        answers.append(await new.post("prompts/list").served())
    assert [answer.answered.status for answer in answers] == [200, 400, 404]
    assert all("Not recorded" in answer.message["error"]["message"] for answer in answers)


REFUSED: dict[str, tuple[int, dict[str, Any]]] = {
    "a foreign host": (421, {"host": "evil.example"}),
    "a foreign host of the same port": (421, {"host": "evil.example:8080"}),
    "a foreign page": (403, {"origin": "https://evil.example"}),
    "another path": (404, {"path": "/"}),
    "no JSON": (400, {"body": b"hello"}),
    "another type": (415, {"content_type": "text/plain"}),
    "no answer that it takes": (406, {"accept": "text/html"}),
    "a batch": (400, {"body": b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]'}),
    "a body that is too large": (413, {"body": b" " * (LARGEST_BODY + 1)}),
    "a request without a session": (400, {"mcp_session_id": ""}),
    "a method of another kind": (405, {"method": "PUT"}),
    "a stream in place of JSON": (406, {"method": "GET", "accept": "application/json"}),
    "a stream without sessions": (405, {"method": "GET", "mcp_protocol_version": "2026-07-28"}),
    "a version that nobody has": (400, {"mcp_protocol_version": "2030-01-01"}),
}


@pytest.mark.parametrize("what", REFUSED)
async def test_the_replay_endpoint_rejects_invalid_requests(what: str) -> None:
    status, changed = REFUSED[what]
    async with a_replay_endpoint(COUNT) as endpoint:
        client = await HttpReplayClient(endpoint).open()
        sent = {"method": "POST", "body": b'{"jsonrpc":"2.0","id":1,"method":"ping"}', **changed}
        sent = {name.replace("_", "-"): value for name, value in sent.items()}
        assert (await client.raw(**sent).served()).answered.status == status


async def test_a_local_web_page_may_read_replay_responses() -> None:
    async with a_replay_endpoint(COUNT) as endpoint:
        client = await HttpReplayClient(endpoint).open()
        origin = "http://localhost:3000"
        allowed = (await client.raw("OPTIONS", origin=origin).served()).answered
        pinged = (await client.post("ping", origin=origin).served()).answered
    assert (allowed.status, pinged.status) == (204, 200)
    assert allowed.headers["access-control-allow-origin"] == pinged.headers["access-control-allow-origin"] == origin


async def test_the_replay_endpoint_ends_the_session_idle_longest_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replay_endpoint, "MOST_SESSIONS", 3)
    async with a_replay_endpoint(SHIP) as endpoint:
        busy, used, idle = [await HttpReplayClient(endpoint, elicitation={}).open() for _ in range(3)]
        shipping = busy.call("ship")
        await eventually(lambda: asked(shipping))
        for client in (idle, used):
            await client.post("ping").served()
        await HttpReplayClient(endpoint).open()
        statuses = [(await client.post("ping").served()).answered.status for client in (busy, idle, used)]
        assert statuses == [200, 404, 200]


async def test_the_replay_endpoint_refuses_a_new_session_when_all_are_in_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay_endpoint, "MOST_SESSIONS", 1)
    async with a_replay_endpoint(COUNT) as endpoint:
        reading = (await HttpReplayClient(endpoint).open()).listen()
        await settle()
        refused = await HttpReplayClient(endpoint).post("initialize", HELLO).served()
        assert refused.answered.status == 503
        reading.hang_up()
        await reading.served()
        await HttpReplayClient(endpoint).open()


async def test_a_stopping_replay_endpoint_ends_streams_at_once_and_calls_after_a_grace_period() -> None:
    clock = FakeClock()
    async with a_replay_endpoint(SHIP, clock) as endpoint:
        client = await HttpReplayClient(endpoint, elicitation={}).open()
        modern = HttpReplayClient(endpoint, is_modern=True)
        pushed, shipping = client.listen(), client.call("ship")
        listening = modern.post("subscriptions/listen", {"notifications": {}})
        await clock.advance(1)
        endpoint.drain()
        await asyncio.gather(pushed.served(), listening.served())
        refused = [await each.post("ping").served() for each in (client, modern)]
        assert [answer.answered.status for answer in refused] == [503, 503]
        await clock.advance(FINISH_SECONDS - 0.1)
        assert (endpoint.is_over, shipping.answered.is_whole) == (False, False)
        await clock.advance(0.2)
        assert "error" in (await shipping.served()).message
        assert endpoint.is_over
