"""Windows of one client that share its default session, because their address names none."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from emceepee.sessions.conversations import LONGEST_GAP
from emceepee.state.client_line import ClientLine
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.in_process.asgi_caller import AsgiCaller, an_asgi_endpoint
from support.in_process.http_endpoint import an_endpoint_client
from support.sessions.asking import elicit, notices, sample

DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}
SLOW: JsonObject = {"server": "one", "tool": "slow"}


@dataclass
class Windows:
    """Two of them; the first one's call has asked something."""

    first: AsgiCaller
    second: AsgiCaller
    backend: ScriptedBackend
    request_id: str
    asking: "asyncio.Task[JsonObject]"
    reply: JsonObject  # that told the first window of it


class Open:
    """A connection that waits for the next request."""

    def is_idle(self) -> bool:
        return True


@asynccontextmanager
async def two_windows(**question: Any) -> AsyncIterator[Windows]:
    async with an_asgi_endpoint() as (installation, endpoint):

        def a_window() -> AsgiCaller:
            line = ClientLine(Open())
            return AsgiCaller(installation, endpoint, is_modern=True, capabilities={}, session_name=None, line=line)

        first, second = a_window(), a_window()
        await first.open()
        await second.call("list_timers")
        assert len(installation.directory.sessions_of("local")) == 1
        call = first.start("execute_tool", **SLOW)
        asked = await installation.backend.next_asked()
        asking = elicit(installation.backend, origin=asked.origin, **question)
        reply = (await call.served()).message["result"]
        [open_one] = installation.directory.sessions_of("local")[0].questions.open()
        try:
            yield Windows(first, second, installation.backend, open_one.request_id, asking, reply)
        finally:
            asking.cancel()


def pending(result: JsonObject) -> JsonObject:
    found = notices(result)["pending_client_action"]
    assert found == result["structuredContent"]["pending_client_action"]
    return dict(found)


async def test_a_question_of_another_conversation_is_only_counted() -> None:
    async with two_windows() as windows:
        told = windows.reply["structuredContent"]["pending_on_server"]["elicitations_for_server"]
        assert [entry["requestId"] for entry in told] == [windows.request_id]
        for _ in range(2):
            counted = pending(await windows.second.call("list_timers"))
            assert counted == {
                "elicitations": [],
                "sampling_requests": [],
                "more": {"elicitations": "1 of another conversation: get_elicitations lists them"},
            }
            own = pending(await windows.first.call("list_timers"))
            assert [entry["requestId"] for entry in own["elicitations"]] == [windows.request_id]
            assert "more" not in own


async def test_await_activity_counts_questions_of_other_conversations_and_repeats_no_event_of_them_in_full() -> None:
    async with two_windows() as windows:
        waiting = windows.second.start("await_activity", last_event_id="0")
        report = (await waiting.served()).message["result"]["structuredContent"]
        assert report["pending_client"]["elicitations"] == []
        assert report["pending_client"]["more"] == {
            "elicitations": "1 of another conversation: get_elicitations lists them"
        }
        assert "Your name?" not in str(report)
        own = (await windows.first.start("await_activity", last_event_id="0").served()).message["result"]
        assert "Your name?" in str(own["structuredContent"])


async def test_the_tool_that_lists_questions_marks_those_of_another_conversation() -> None:
    """A window whose conversation was not recognized still finds its own question."""
    async with two_windows() as windows:
        [others] = (await windows.second.call("get_elicitations"))["structuredContent"]["requests"]
        assert (others["requestId"], others["otherConversation"]) == (windows.request_id, True)
        [own] = (await windows.first.call("get_elicitations"))["structuredContent"]["requests"]
        assert "otherConversation" not in own


async def test_a_call_that_asks_sees_its_own_question_and_a_count_of_the_others() -> None:
    async with two_windows() as windows:
        call = windows.second.start("execute_tool", **SLOW)
        asked = await windows.backend.next_asked()
        asking = elicit(windows.backend, "Your age?", origin=asked.origin)
        reply = (await call.served()).message["result"]
        assert "Your age?" in reply["content"][0]["text"]
        assert "Your name?" not in str(reply)
        on_server = reply["structuredContent"]["pending_on_server"]
        assert len(on_server["elicitations_for_server"]) == 1
        assert on_server["more_for_server"]["elicitations"].startswith("1 of another conversation")
        asking.cancel()


async def test_a_question_of_unknown_origin_is_shown_to_each_conversation_that_may_have_asked_it() -> None:
    async with two_windows() as windows:
        started = [
            (window.start("execute_tool", **SLOW), await windows.backend.next_asked())
            for window in (windows.first, windows.second)
        ]
        asking = elicit(windows.backend, "Whose?")
        for line, _ in started:
            await line.served()
        for window in (windows.first, windows.second):
            shown = pending(await window.call("list_timers"))["elicitations"]
            assert "Whose?" in [entry["message"] for entry in shown]
        started[1][1].reply(**DONE)  # so the first window's call asked
        await settle()
        assert "Whose?" not in str(pending(await windows.second.call("list_timers")))
        assert "Whose?" in str(pending(await windows.first.call("list_timers")))
        asking.cancel()


async def test_sampling_requests_of_other_conversations_are_only_counted() -> None:
    async with two_windows() as windows:
        call = windows.first.start("execute_tool", **SLOW)
        asked = await windows.backend.next_asked()
        asking = sample(windows.backend, origin=asked.origin)
        await call.served()
        counted = pending(await windows.second.call("list_timers"))
        assert (counted["sampling_requests"], len(counted["more"])) == ([], 2)
        asking.cancel()


async def test_the_first_conversation_is_recognized_over_a_new_connection() -> None:
    async with two_windows() as windows:
        assert windows.first.line is not None
        windows.first.line.carrier = None  # closed, as after a pause
        windows.first.line = ClientLine(Open())
        own = pending(await windows.first.call("list_timers"))
        assert [entry["requestId"] for entry in own["elicitations"]] == [windows.request_id]


async def test_behind_a_proxy_all_windows_of_a_program_are_one_conversation() -> None:
    """Its connections belong to the proxy and identify no window."""
    async with an_endpoint_client(tokens={"secret": "ada"}) as client:
        call = {"name": "list_timers", "arguments": {}}
        for forwarding, conversations in (({"x_forwarded_for": "10.0.0.1"}, 1), ({}, 3)):
            for _ in range(2):
                for _ in range(LONGEST_GAP):
                    client.message("ping")  # uses up a number
                _, served = await client.start_modern("tools/call", call, authorization="Bearer secret", **forwarding)
                await served
            [session] = client.endpoint.directory.sessions_of("ada")
            assert session.conversations is not None
            assert len(session.conversations) == conversations


async def test_in_a_named_session_every_caller_sees_every_question() -> None:
    async with an_asgi_endpoint() as (installation, endpoint):
        callers = [
            AsgiCaller(installation, endpoint, is_modern=True, capabilities={}, line=ClientLine(Open()))
            for _ in range(2)
        ]
        await callers[0].open()
        call = callers[0].start("execute_tool", **SLOW)
        asking = elicit(installation.backend, origin=(await installation.backend.next_asked()).origin)
        await call.served()
        shown = pending(await callers[1].call("list_timers"))
        assert len(shown["elicitations"]) == 1
        asking.cancel()
