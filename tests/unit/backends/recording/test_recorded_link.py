"""Recording a link without any effect on its connection."""

import asyncio
import json
from typing import Any

import pytest

from emceepee.backends.link import Link, LinkError, LinkFailure, RpcError
from emceepee.backends.process.child import Child
from emceepee.backends.recording.recorder import Recorder
from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.replay.recording_reader import parse_recording
from support.backends.scripted_backend import ScriptedBackend, ScriptedDialer
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import FakeClock, settle


class Recorded:
    """A recorded link to a scripted backend."""

    def __init__(self, **answers: Any) -> None:
        self.backend, self.listener, self.lines = ScriptedBackend(), ScriptedListener(**answers), list[bytes]()
        self.recorder = Recorder(
            self.lines.append, FakeClock(), server="shop", target="stdio://shop", most_bytes=1 << 20
        )

    async def open(self) -> Link:
        spec = BackendSpec(name="shop", target=StdioTarget(command="shop"))
        return await ScriptedDialer(shop=self.backend).dial(spec, self.listener, recorder=self.recorder)

    def entries(self) -> list[dict[str, Any]]:
        """Return the entries after the header and the server facts, without their timestamps."""
        found = [json.loads(line) for line in self.lines]
        return [{key: value for key, value in entry.items() if key != "at"} for entry in found[1:]]


async def test_a_recording_contains_the_server_facts_and_how_the_link_ended() -> None:
    recorded = Recorded()
    link = await recorded.open()
    await link.close()
    await settle()
    opened, closed = recorded.entries()
    assert (opened["type"], opened["server"]["serverInfo"]) == ("opened", {"name": "scripted", "version": "1"})
    assert closed == {"type": "closed", "reason": "the connection was closed"}


async def test_requests_and_results_are_recorded_without_secrets_and_passed_on_with_them() -> None:
    recorded = Recorded()
    recorded.backend.answers["tools/call"] = lambda _: {"structuredContent": {"token": "t0ps3cret"}}
    link = await recorded.open()
    result = await link.request("tools/call", {"name": "log_in", "arguments": {"password": "hunter2"}}, origin="mine")
    assert result == {"structuredContent": {"token": "t0ps3cret"}}
    assert recorded.backend.seen == [("tools/call", {"name": "log_in", "arguments": {"password": "hunter2"}})]
    params = {"name": "log_in", "arguments": {"password": "***"}}
    assert recorded.entries()[1:] == [
        {"type": "request", "id": 1, "method": "tools/call", "params": params},
        {"type": "result", "id": 1, "result": {"structuredContent": {"token": "***"}}},
    ]


async def test_a_call_that_is_repeated_with_answers_is_one_exchange_in_the_recording() -> None:
    recorded = Recorded()
    asked = {"who": {"method": "elicitation/create", "params": {"message": "Who?"}}}
    results: list[dict[str, Any]] = [
        {"resultType": "input_required", "inputRequests": asked, "requestState": "ann lives in Elm"},
        {"resultType": "complete", "content": []},
    ]
    recorded.backend.answers["tools/call"] = lambda _: results.pop(0)
    link = await recorded.open()
    first = await link.request("tools/call", {"name": "ship"})
    assert first["requestState"] == "ann lives in Elm"
    answers = {"who": {"action": "accept", "content": {"name": "ann"}}}
    again = {"name": "ship", "inputResponses": answers, "requestState": "ann lives in Elm"}
    await link.request("tools/call", again)
    assert recorded.backend.seen[-1] == ("tools/call", again)
    assert "Elm" not in json.dumps(recorded.entries())
    (exchange,) = parse_recording(recorded.lines).exchanges
    assert exchange.result == {"resultType": "complete", "content": []}


async def test_a_recording_distinguishes_errors_failures_and_cancelled_requests() -> None:
    recorded = Recorded()
    link = await recorded.open()
    asking = [asyncio.create_task(link.request("tools/call", {"name": name}, origin=name)) for name in "abc"]
    refused, cancelled, _ = [await recorded.backend.next_asked() for _ in asking]
    refused.answer.set_exception(RpcError({"code": -1, "message": "no"}))
    await settle()
    asking[1].cancel()
    await settle()
    recorded.backend.link.break_off("exited with code 1")
    outcomes = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [RpcError, asyncio.CancelledError, LinkError]
    assert cancelled in recorded.backend.cancelled
    ends = {entry["id"]: entry for entry in recorded.entries() if entry["type"] in ("error", "failed", "cancelled")}
    assert ends[1] == {"type": "error", "id": 1, "error": {"code": -1, "message": "no"}}
    assert ends[2] == {"type": "cancelled", "id": 2}
    assert ends[3] == {"type": "failed", "id": 3, "reason": "exited with code 1"}


async def test_a_recorded_server_message_belongs_to_its_call_and_still_reaches_the_caller() -> None:
    recorded = Recorded(**{"elicitation/create": {"action": "accept", "content": {"street": "Elm"}}})
    link = await recorded.open()
    asking = [asyncio.create_task(link.request("tools/call", {"name": name}, origin=name)) for name in "ab"]
    first, _ = [await recorded.backend.next_asked() for _ in asking]
    inner = recorded.backend.link.listener
    inner.handle_notification("notifications/progress", {"progressToken": 1, "progress": 1}, first.origin)
    inner.handle_notification("notifications/message", {"data": "hi"}, None)
    answer = await inner.handle_request("elicitation/create", {"message": "Where?"}, first.origin)
    assert answer == {"action": "accept", "content": {"street": "Elm"}}
    assert [(method, origin) for method, _, origin in recorded.listener.heard] == [
        ("notifications/progress", "a"),
        ("notifications/message", None),
    ]
    assert recorded.listener.questions == [("elicitation/create", {"message": "Where?"}, "a")]
    told = recorded.entries()[3:]
    assert [(entry["type"], entry.get("during")) for entry in told] == [
        ("notification", 1),
        ("notification", 2),  # the newest running call, because the transport does not name one
        ("question", 1),
        ("answer", None),
    ]
    assert told[0]["params"] == {"progress": 1}
    assert told[-1]["result"] == {"action": "accept", "content": {"street": "***"}}
    await link.close()
    await asyncio.gather(*asking, return_exceptions=True)


async def test_a_recorded_change_on_a_listening_request_belongs_to_the_call_that_caused_it() -> None:
    recorded = Recorded()
    link = await recorded.open()
    calling = asyncio.create_task(link.request("tools/call", {"name": "a"}, origin="a"))
    await recorded.backend.next_asked()
    listening = asyncio.create_task(link.request("subscriptions/listen", {}, origin="ear"))
    listen = await recorded.backend.next_asked("subscriptions/listen")
    recorded.backend.link.listener.handle_notification("notifications/tools/list_changed", {}, listen.origin)
    assert recorded.entries()[-1]["during"] == 1
    assert recorded.listener.heard[-1][2] == "ear"
    await link.close()
    await asyncio.gather(calling, listening, return_exceptions=True)


async def test_a_recorded_question_that_outlives_its_link_is_written_with_its_later_answer() -> None:
    recorded = Recorded()
    answering = recorded.listener.takes = asyncio.create_task(for_ever())
    link = await recorded.open()
    assert recorded.backend.link.listener.take_request(7, "elicitation/create", {"message": "?"}) is not None
    await link.send_answer({"jsonrpc": "2.0", "id": 7, "error": {"code": 1, "message": "no"}})
    assert [entry["type"] for entry in recorded.entries()[1:]] == ["question", "answer"]
    assert recorded.entries()[-1]["error"] == {"code": 1, "message": "no"}
    answering.cancel()


async def test_two_recorded_links_use_different_question_ids() -> None:
    recorded = Recorded(**{"elicitation/create": {"action": "decline"}})
    links = [await recorded.open(), await recorded.open()]
    for inner in recorded.backend.links:
        await inner.listener.handle_request("elicitation/create", {"message": "?"}, None)
    asked = [entry["id"] for entry in recorded.entries() if entry["type"] in ("question", "answer")]
    assert asked == ["q1", "q1", "q2", "q2"]
    for link in links:
        await link.close()


async def for_ever() -> None:
    await asyncio.Event().wait()


async def test_a_recorded_connection_that_cannot_be_opened_states_why() -> None:
    recorded = Recorded()
    recorded.backend.refuses = LinkError(LinkFailure.UNREACHABLE, "no such program")
    with pytest.raises(LinkError):
        await recorded.open()
    assert recorded.entries() == [{"type": "failed", "reason": "no such program"}]


async def test_a_recorded_reason_contains_no_stderr_output() -> None:
    child = Child("shop", FakeClock(), on_line=lambda _: None, on_stderr=lambda _: None, longest=1000)
    child.pipe_data_received(2, b"connecting with hunter2\n")
    words = child.describe_end()
    assert "hunter2" in words
    recorded = Recorded()
    recorded.backend.refuses = LinkError(LinkFailure.CLOSED, words)
    with pytest.raises(LinkError, match="hunter2"):
        await recorded.open()
    recorded.backend.refuses = None
    link = await recorded.open()
    asking = asyncio.create_task(link.request("tools/call", {"name": "buy"}))
    await recorded.backend.next_asked()
    recorded.backend.link.break_off(words)
    with pytest.raises(LinkError, match="hunter2"):
        await asyncio.wait_for(asking, 5)
    reasons = [entry["reason"] for entry in recorded.entries() if "reason" in entry]
    assert reasons == ["shop closed its standard input or output"] * 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("redirects to https://ann:pw@a.org/t0ps3cret/mcp?t0=ps3cret, or so", "redirects to https://a.org/… or so"),
        ("redirects to unix:///run/a.sock:/t0ps3cret; use it", "redirects to unix:///run/a.sock:/… use it"),
        ("HTTP 401 from a.org/b", "HTTP 401 from a.org/b"),
    ],
)
async def test_urls_in_a_recorded_reason_lose_their_paths(words: str, told: str) -> None:
    recorded = Recorded()
    recorded.backend.refuses = LinkError(LinkFailure.REFUSED, words)
    with pytest.raises(LinkError):
        await recorded.open()
    assert recorded.entries() == [{"type": "failed", "reason": told}]


class Unread(dict[str, Any]):
    """A message that raises when it is inspected, because inspection takes time."""

    def items(self) -> Any:
        raise AssertionError("it was looked through")


async def test_messages_after_the_end_of_a_recording_are_not_inspected() -> None:
    recorded = Recorded(**{"elicitation/create": Unread(action="accept")})
    link = await recorded.open()
    begun = asyncio.create_task(link.request("tools/call", {"name": "slow"}, origin="mine"))
    slow = await recorded.backend.next_asked()
    recorded.recorder.stop()
    recorded.backend.answers["tools/call"] = lambda _: Unread(content=[])
    assert await link.request("tools/call", Unread(name="buy")) == {"content": []}
    inner = recorded.backend.link.listener
    inner.handle_notification("notifications/progress", Unread(progress=1), slow.origin)
    assert await inner.handle_request("elicitation/create", Unread(), slow.origin) == {"action": "accept"}
    assert [origin for *_, origin in (*recorded.listener.heard, *recorded.listener.questions)] == ["mine", "mine"]
    slow.answer.set_result(Unread(content=[]))
    assert await asyncio.wait_for(begun, 5) == {"content": []}
    await link.close()
    assert [entry["type"] for entry in recorded.entries()] == ["opened", "request"]
