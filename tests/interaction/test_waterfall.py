"""Every request appears as phases on a timeline, with any outcome."""

import asyncio
from typing import Any

from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.console.rows import SHOWN_LOG_BYTES, detail, row
from emceepee.state.limits import Limits
from emceepee.telemetry.spans import Span
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import Asked, ScriptedBackend
from support.fakes.clock import settle
from support.sessions.asking import elicit, open_ids, task_id
from support.sessions.scene import Scene, a_scene

DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}


def newest(scene: Scene) -> Span:
    return scene.session.journal.since(0)[-1]


def shown(scene: Scene) -> JsonObject:
    return row(newest(scene), scene.session)


def bars(scene: Scene) -> list[tuple[str, float, float | None]]:
    """The phases of the newest request: what, from when, until when."""
    return [(bar["kind"], bar["from"], bar["to"]) for bar in shown(scene)["phases"]]


async def test_a_call_is_shown_while_it_runs_and_when_it_is_done() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call = scene.start("execute_tool", server="one", tool="echo", args={"text": "hi"})
        asked = await scene.backends["one"].next_asked()
        running = shown(scene)
        assert (running["type"], running["name"], running["server"]) == ("tool_call", "echo", "one")
        assert (running["status"], "endedAt" in running) == ("pending", False)
        assert bars(scene) == [("call", 0, None)]
        await scene.clock.advance(2)
        asked.reply(**DONE)
        await call
        assert shown(scene)["status"] == "success"
        assert shown(scene)["endedAt"] - shown(scene)["startedAt"] == 2000
        assert bars(scene) == [("call", 0, 2000)]
        full = detail(newest(scene), scene.session)
        assert (full["args"], full["result"]) == ({"text": "hi"}, DONE)


async def test_the_time_to_connect_is_a_phase_of_the_call_that_waits_for_it() -> None:
    backend = ScriptedBackend()
    backend.opens = asyncio.get_running_loop().create_future()
    backend.answers["tools/call"] = lambda _: DONE
    async with a_scene(one=backend) as scene:
        call = scene.start("execute_tool", server="one", tool="echo")
        await settle()
        await scene.clock.advance(3)
        backend.opens.set_result(None)
        await call
        assert bars(scene) == [("connecting", 0, 3000), ("call", 3000, 3000)]


async def test_a_repeated_attempt_of_an_unsent_call_is_shown_as_a_retry() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call = scene.start("execute_tool", server="one", tool="echo")
        first = await scene.backends["one"].next_asked()
        await scene.clock.advance(1)
        first.fail(LinkError(LinkFailure.SESSION_LOST, "it has forgotten us", may_have_run=False))
        second = await scene.backends["one"].next_asked()
        await scene.clock.advance(1)
        second.reply(**DONE)
        await call
        assert [kind for kind, _, _ in bars(scene) if kind != "connecting"] == ["call", "retry"]
        assert bars(scene)[-1] == ("retry", 1000, 2000)


async def test_a_question_is_shown_as_waiting_and_the_call_continues_as_a_task() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        call = scene.start("execute_tool", server="one", tool="slow")
        asked = await scene.backends["one"].next_asked()
        asking = elicit(scene.backends["one"], origin=asked.origin)
        promoted = await call
        task_id = promoted["structuredContent"]["proxy_task"]["task_id"]
        span = next(span for span in scene.session.journal.since(0) if span.name == "slow")
        assert (span.task_id, str(span.status), span.ended) == (task_id, "pending", None)
        await scene.clock.advance(5)
        [request_id] = await open_ids(scene)
        await scene.value("respond_to_elicitation", request_id=request_id, action="accept", content={"name": "Jo"})
        await asking
        await scene.clock.advance(1)
        asked.reply(**DONE)
        await settle()
        kinds = {(bar["kind"], bar["from"], bar["to"]) for bar in row(span, scene.session)["phases"]}
        assert kinds == {("call", 0, 6000), ("waiting", 0, 5000)}
        assert (str(span.status), span.result) == ("success", DONE)


def waiting(scene: Scene) -> JsonObject:
    """The calls that are drawn as waiting for an answer: whether that is sure."""
    rows = [row(span, scene.session) for span in scene.session.journal.since(0)]
    return {
        shown["name"]: bar["kind"] == "waiting" for shown in rows for bar in shown["phases"] if "waiting" in bar["kind"]
    }


async def two_calls(scene: Scene, *tools: str) -> list[tuple["asyncio.Task[JsonObject]", Asked]]:
    started = []
    for tool in tools:
        call = scene.start("execute_tool", server="one", tool=tool)
        started.append((call, await scene.backends["one"].next_asked()))
    return started


async def test_a_question_of_unknown_origin_is_shown_at_every_running_call() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        calls = await two_calls(scene, "echo", "slow")
        asking = elicit(scene.backends["one"], origin=None)
        await asyncio.gather(*(call for call, _ in calls))
        assert waiting(scene) == {"echo": False, "slow": False}
        asking.cancel()


async def test_a_call_with_a_result_before_the_answer_to_a_question_is_not_shown_as_waiting() -> None:
    """The call did not ask, so the question belongs to the other call."""
    async with a_scene(one=ScriptedBackend()) as scene:
        (_, echo), (slow, _) = await two_calls(scene, "echo", "slow")
        asking = elicit(scene.backends["one"], origin=None)
        promoted = await slow
        echo.reply(**DONE)
        await settle()
        assert waiting(scene) == {"slow": True}
        [request_id] = await open_ids(scene)
        await scene.value("respond_to_elicitation", request_id=request_id, action="accept", content={"name": "Jo"})
        await asking
        assert "proxy_task" in promoted["structuredContent"]
        assert waiting(scene) == {"slow": True}


async def test_a_call_that_certainly_waits_for_another_answer_is_not_shown_as_asking_again() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        [(first, _)] = await two_calls(scene, "slow")
        asking = [elicit(scene.backends["one"], "First?", origin=None)]
        await first
        [(second, _)] = await two_calls(scene, "echo")
        asking.append(elicit(scene.backends["one"], "Second?", origin=None))
        promoted = await second
        assert waiting(scene) == {"slow": True, "echo": True}
        text = promoted["content"][0]["text"]
        assert ("Second?" in text, "First?" in text) == (True, False)
        for task in asking:
            task.cancel()


async def test_a_call_that_begins_after_a_question_does_not_show_it() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        [(first, _)] = await two_calls(scene, "slow")
        asking = elicit(scene.backends["one"], "First?", origin=None)
        await first
        [(second, _)] = await two_calls(scene, "echo")
        await scene.clock.advance(60)
        promoted = await second
        assert "First?" not in promoted["content"][0]["text"]
        assert waiting(scene) == {"slow": True}
        asking.cancel()


async def test_a_call_that_asks_twice_at_once_is_shown_as_waiting_for_both() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        [(call, _)] = await two_calls(scene, "slow")
        asking = [elicit(scene.backends["one"], text, origin=None) for text in ("First?", "Second?")]
        await call
        await settle()
        bars = row(scene.session.journal.since(0)[-1], scene.session)["phases"]
        assert [bar["kind"] for bar in bars].count("waiting") == 2
        for task in asking:
            task.cancel()


async def test_an_abandoned_call_may_still_be_the_origin_of_a_question() -> None:
    """Its server may continue to run the call."""
    async with a_scene(one=ScriptedBackend()) as scene:
        (echo, _), (slow, _) = await two_calls(scene, "echo", "slow")
        asking = elicit(scene.backends["one"], origin=None)
        promoted = [await echo, await slow]
        await scene.value("cancel_task", task_id=task_id(promoted[0]))
        assert waiting(scene)["slow"] is False
        asking.cancel()


async def test_the_outcome_of_a_request_is_shown() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        backend = scene.backends["one"]
        backend.answers["tools/call"] = lambda _: {"content": [{"type": "text", "text": "no luck"}], "isError": True}
        await scene.call("execute_tool", server="one", tool="echo")
        assert (shown(scene)["status"], shown(scene)["error"]) == ("error", "no luck")
        await scene.call("execute_tool", server="nobody", tool="echo")
        assert shown(scene)["status"] == "error"
        assert "nobody" in shown(scene)["error"]
        del backend.answers["tools/call"]
        call = scene.start("execute_tool", server="one", tool="slow")
        await backend.next_asked()
        call.cancel()
        await asyncio.wait([call])
        assert shown(scene)["status"] == "cancelled"


async def test_a_task_that_is_canceled_or_expires_ends_its_row() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        calls = [scene.start("execute_tool", server="one", tool="slow", timeout_ms=10) for _ in range(2)]
        await settle()
        await scene.clock.advance(1)
        await asyncio.gather(*calls)
        first, second = (span for span in scene.session.journal.since(0) if span.name == "slow")
        await scene.value("cancel_task", task_id=first.task_id)
        assert str(first.status) == "cancelled"
        await scene.clock.advance(600)
        assert (str(second.status), second.error) == ("error", "outlived its time to live")


async def test_calls_of_emceepee_tools_are_shown_without_confidential_arguments() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        asking = elicit(scene.backends["one"], origin=None)
        await settle()
        [request_id] = await open_ids(scene)
        await scene.value("respond_to_elicitation", request_id=request_id, action="accept", content={"name": "Jo"})
        await asking
        seen = newest(scene)
        assert (seen.kind, seen.name) == ("own_tool", "respond_to_elicitation")
        assert seen.arguments == {"request_id": request_id, "action": "accept", "content": "***"}
        await scene.call("add_server", name="x", command="sh", args=["--key", "s3cret"], env={"A": "s3cret"})
        assert "s3cret" not in str(detail(newest(scene), scene.session))
        for url in ("https://host/s/s3cret-of-16-letters/mcp#s3cret", f"https://host/{'s3cret' * 2000}"):
            await scene.call("add_server", name="x", url=url)
            assert "s3cret" not in str(detail(newest(scene), scene.session))


async def test_secrets_in_tool_arguments_are_masked() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        scene.backends["one"].answers["tools/call"] = lambda _: {"structuredContent": {"access_token": "s3cret"}}
        args: dict[str, Any] = {"api_key": "s3cret", "url": "https://u:s3cret@host/?q=s3cret", "page": 3}
        await scene.call("execute_tool", server="one", tool="echo", args=args)
        full = detail(newest(scene), scene.session)
        assert "s3cret" not in str(full)
        assert full["args"]["page"] == 3


async def test_log_lines_during_a_request_are_shown_with_it() -> None:
    async with a_scene(one=ScriptedBackend(), two=ScriptedBackend()) as scene:
        link, other = scene.backends["one"].link, scene.backends["two"].link
        link.listener.handle_output("too early", "stderr")
        await scene.clock.advance(1)
        call = scene.start("execute_tool", server="one", tool="echo")
        asked = await scene.backends["one"].next_asked()
        link.listener.handle_output("just right", "stderr")
        other.listener.handle_output("someone else", "stderr")
        await scene.value("get_logs")  # reading takes them away from get_logs, not from here
        asked.reply(**DONE)
        await call
        span = next(span for span in scene.session.journal.since(0) if span.name == "echo")
        assert [line["data"] for line in detail(span, scene.session)["logs"]] == ["just right"]


async def test_the_full_view_of_a_request_shows_the_last_log_lines_truncated() -> None:
    async with a_scene(one=ScriptedBackend(is_process=True)) as scene:
        call = scene.start("execute_tool", server="one", tool="echo")
        asked = await scene.backends["one"].next_asked()
        for number in range(40):
            scene.backends["one"].link.listener.handle_output(f"{number} {'x' * 50_000}", "stderr")
        asked.reply(**DONE)
        await call
        span = next(span for span in scene.session.journal.since(0) if span.name == "echo")
        full = detail(span, scene.session)
        assert full["isCut"]
        assert len(encode(full)) < 2 * SHOWN_LOG_BYTES
        assert full["logs"][-1]["data"].startswith("39 xxx")


def log_lines(scene: Scene, name: str) -> JsonObject:
    """Return the newest request's log lines, and whether each surely belongs to it."""
    span = next(span for span in reversed(scene.session.journal.since(0)) if span.name == name)
    return {line["data"]: "isUnsure" not in line for line in detail(span, scene.session)["logs"]}


async def test_a_log_line_on_the_stream_of_a_call_is_shown_with_that_call_alone() -> None:
    """This holds at any time and with any other calls."""
    async with a_scene(one=ScriptedBackend()) as scene:
        (echo_call, echo), (slow_call, slow) = await two_calls(scene, "echo", "slow")
        listener = scene.backends["one"].link.listener
        listener.handle_notification("notifications/message", {"level": "info", "data": "of echo"}, echo.origin)
        listener.handle_notification("notifications/message", {"level": "info", "data": "of slow"}, slow.origin)
        echo.reply(**DONE)
        await echo_call
        await scene.clock.advance(5)
        listener.handle_notification("notifications/message", {"level": "info", "data": "late"}, echo.origin)
        slow.reply(**DONE)
        await slow_call
        assert log_lines(scene, "echo") == {"of echo": True, "late": True}
        assert log_lines(scene, "slow") == {"of slow": True}


async def test_a_log_line_outside_of_any_stream_is_shown_with_each_running_call() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        [(echo_call, echo)] = await two_calls(scene, "echo")
        link = scene.backends["one"].link
        await scene.clock.advance(1)
        link.listener.handle_output("only echo runs", "stderr")
        await scene.clock.advance(1)
        [(slow_call, slow)] = await two_calls(scene, "slow")
        link.listener.handle_output("both run", "stderr")
        await scene.clock.advance(1)
        echo.reply(**DONE)
        await echo_call
        await scene.clock.advance(1)
        link.listener.handle_output("only slow runs", "stderr")
        slow.reply(**DONE)
        await slow_call
        assert log_lines(scene, "echo") == {"only echo runs": True, "both run": False}
        assert log_lines(scene, "slow") == {"both run": False, "only slow runs": True}


async def test_a_log_line_is_not_shown_with_a_call_to_emceepee_that_names_the_server() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        [(call, echo)] = await two_calls(scene, "echo")
        await scene.value("get_server_status", server="one")
        scene.backends["one"].link.listener.handle_output("only echo runs", "stderr")
        echo.reply(**DONE)
        await call
        assert log_lines(scene, "echo") == {"only echo runs": True}


async def test_only_the_newest_requests_are_stored() -> None:
    async with a_scene(limits=Limits(requests_per_session=3), one=ScriptedBackend()) as scene:
        for number in range(5):
            await scene.call("list_tools", tool=f"t{number}")
        assert [span.arguments["tool"] for span in scene.session.journal.since(0)] == ["t2", "t3", "t4"]


async def test_the_number_of_stored_requests_can_be_zero() -> None:
    async with a_scene(limits=Limits(requests_per_session=0), one=ScriptedBackend()) as scene:
        await scene.value("list_servers")
        assert scene.session.journal.since(0) == []


async def test_a_server_pattern_is_not_shown_as_a_server_name() -> None:
    async with a_scene(one=ScriptedBackend()) as scene:
        await scene.value("list_tools", server="^one$")
        assert newest(scene).server is None
        await scene.value("get_server_status", server="one")
        assert newest(scene).server == "one"


async def test_secrets_in_a_resource_uri_are_masked_in_name_and_error() -> None:
    def refuse(params: JsonObject) -> JsonObject:
        raise RpcError({"code": -32002, "message": f"no such thing: {params['uri']}"})

    backend = ScriptedBackend()
    backend.answers["resources/read"] = refuse
    async with a_scene(one=backend) as scene:
        await scene.error("read_resource", server="one", uri="https://ada:s3cret@host.test/a?token=s3cret")
        assert (shown(scene)["name"], "s3cret" in str(shown(scene))) == ("https://host.test/a?token=***", False)
        assert "no such thing" in shown(scene)["error"]
