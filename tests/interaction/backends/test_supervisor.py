"""A lost connection recovers by itself, reports that once, and releases all waiting callers."""

import asyncio
from dataclasses import replace

import pytest

from emceepee.backends.link import LinkError, LinkFailure, RpcError
from emceepee.backends.spec import RestartConfig, StdioTarget
from emceepee.errors import BackendDisconnected
from emceepee.state.limits import Limits
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.scene import Scene, a_scene, scripted_spec

DOWN = LinkError(LinkFailure.UNREACHABLE, "connection refused", may_have_run=False)
CRASHED = LinkError(LinkFailure.CLOSED, "exited with code 3")
DONE: JsonObject = {"content": [{"type": "text", "text": "done"}]}


def http() -> ScriptedBackend:
    backend = ScriptedBackend()
    backend.answers["tools/call"] = lambda _: DONE
    return backend


def process() -> ScriptedBackend:
    backend = ScriptedBackend(is_process=True)
    backend.answers["tools/call"] = lambda _: DONE
    return backend


async def call(scene: Scene) -> JsonObject:
    return await scene.call("execute_tool", server="one", tool="echo")


# Trying again.


async def test_a_lost_http_server_is_retried_after_one_second_then_with_doubled_delays_up_to_three_minutes() -> None:
    backend = http()
    backend.refuses = DOWN
    async with a_scene(one=backend) as scene:
        for expected in (1, 2, 4, 8, 16, 32, 64, 128, 180, 180, 180):
            tries = len(backend.dials)
            assert (await scene.value("list_servers"))["servers"][0]["nextRetryMs"] == expected * 1000
            await scene.clock.advance(expected - 0.001)
            assert len(backend.dials) == tries
            await scene.clock.advance(0.001)
            assert len(backend.dials) == tries + 1
        backend.refuses = None
        await scene.clock.advance(180)
        assert scene.status("one") == "connected"


async def test_a_crashed_stdio_server_is_restarted_five_times_and_then_reported_as_failed() -> None:
    backend = process()
    async with a_scene(one=backend) as scene:
        scene.events()
        backend.refuses = CRASHED
        backend.link.crash()
        for delay in (1, 2, 4, 8, 16):
            await scene.clock.advance(delay)
        events = scene.events()
        assert [kind for kind, _ in events] == [
            "process_crashed",
            "server_disconnected",
            *["restarting"] * 5,
            "restart_failed",
        ]
        assert [data["delayMs"] for kind, data in events if kind == "restarting"] == [1000, 2000, 4000, 8000, 16000]
        assert events[-1][1] == {"name": "one", "attempts": 5, "error": "exited with code 3"}
        assert scene.status("one") == "error"
        await scene.clock.advance(3600)
        assert len(backend.dials) == 6


async def test_a_process_that_crashes_soon_after_each_start_gets_no_new_restart_budget() -> None:
    backend = process()
    async with a_scene(one=backend) as scene:
        for delay in (1, 2, 4, 8, 16):
            backend.link.crash()
            await scene.clock.advance(delay)
            assert scene.status("one") == "connected"
            await scene.clock.advance(59.9)
        scene.events()
        backend.link.crash()
        await settle()
        assert scene.event_types() == ["process_crashed", "server_disconnected", "restart_failed"]


async def test_a_process_that_ran_for_a_minute_gets_a_new_restart_budget() -> None:
    backend = process()
    async with a_scene(one=backend) as scene:
        for _ in range(12):
            backend.link.crash()
            await scene.clock.advance(1)
            assert scene.status("one") == "connected"
            await scene.clock.advance(60)


async def test_a_server_with_restarts_disabled_stays_disconnected_until_a_reconnect_request() -> None:
    spec = replace(scripted_spec("one"), target=StdioTarget(command="one", restart=RestartConfig(enabled=False)))
    backend = process()
    async with a_scene(specs=[spec], one=backend) as scene:
        backend.link.crash()
        await scene.clock.advance(3600)
        assert scene.status("one") == "disconnected"
        assert "reconnect_server" in (await scene.error("execute_tool", server="one", tool="echo"))["message"]
        assert (await scene.value("reconnect_server", name="one"))["server"]["status"] == "connected"


async def test_a_missing_program_is_not_started_again() -> None:
    backend = process()
    backend.refuses = LinkError(LinkFailure.UNREACHABLE, "there is no program 'one' on the PATH")
    async with a_scene(one=backend) as scene:
        await scene.clock.advance(3600)
        assert (scene.status("one"), len(backend.dials)) == ("error", 1)


@pytest.mark.parametrize("kind", [http, process])
async def test_a_call_during_the_retry_delay_reconnects_at_once(kind: type[ScriptedBackend]) -> None:
    backend = kind()
    async with a_scene(one=backend) as scene:
        backend.link.break_off("the line went dead")
        await settle()
        assert scene.status("one") == "reconnecting"
        assert (await call(scene))["content"][0] == DONE["content"][0]
        assert len(backend.dials) == 2


async def test_the_error_of_a_failed_attempt_contains_the_time_of_the_next_one() -> None:
    backend = http()
    async with a_scene(one=backend) as scene:
        backend.refuses = DOWN
        backend.link.break_off("the line went dead")
        await settle()
        error = await scene.error("execute_tool", server="one", tool="echo")
        assert error["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        assert error["details"] == {
            "server": "one",
            "status": "reconnecting",
            "reconnectAttempt": 2,
            "nextRetryMs": 2000,
        }


async def test_a_call_that_finds_its_server_gone_is_sent_again_on_the_next_link() -> None:
    """The restarted server no longer knows the session. The caller does not notice."""
    backend = http()
    gone = [LinkError(LinkFailure.SESSION_LOST, "the server no longer knows our session", may_have_run=False)]

    def answer(_: JsonObject) -> JsonObject:
        if gone:
            raise gone.pop()
        return DONE

    backend.answers["tools/call"] = answer
    async with a_scene(one=backend) as scene:
        assert (await call(scene))["content"][0] == DONE["content"][0]
        assert [method for method, _ in backend.seen].count("tools/call") == 2
        assert len(backend.links) == 2


@pytest.mark.parametrize("tool", ["list_tools", "list_prompts", "complete", "set_log_level", "subscribe_resource"])
async def test_any_request_that_finds_its_server_gone_reconnects_it_and_succeeds(tool: str) -> None:
    backend = http()
    backend.answers["completion/complete"] = lambda _: {"completion": {"values": []}}
    backend.answers["resources/subscribe"] = lambda _: {}
    arguments: dict[str, JsonObject] = {
        "complete": {"server": "one", "ref": "plan", "argument": "a", "value": "b"},
        "set_log_level": {"server": "one", "level": "error"},
        "subscribe_resource": {"server": "one", "uri": "note://a"},
    }
    async with a_scene(one=backend) as scene:
        first = backend.link
        answers = dict(backend.answers)

        def forgotten(_: JsonObject) -> JsonObject:
            backend.answers = answers
            raise LinkError(LinkFailure.SESSION_LOST, "the server no longer knows our session", may_have_run=False)

        backend.answers = dict.fromkeys(answers, forgotten)
        result = await scene.value(tool, **arguments.get(tool, {}))
        assert not result.get("errors")
        assert first.closed.done()
        assert scene.status("one") == "connected"


async def test_a_call_that_may_have_run_is_never_resent() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        waiting = scene.start("execute_tool", server="one", tool="echo")
        (await backend.next_asked()).fail(LinkError(LinkFailure.UNREACHABLE, "the connection was reset"))
        error = (await waiting)["structuredContent"]["error"]
        assert error["details"]["mayHaveRun"] is True
        assert [method for method, _ in backend.seen].count("tools/call") == 1


async def test_a_server_that_hangs_while_it_connects_times_out_and_is_retried() -> None:
    backend = http()
    backend.opens = asyncio.get_running_loop().create_future()
    async with a_scene(one=backend) as scene:
        waiting = scene.start("execute_tool", server="one", tool="echo")
        await scene.clock.advance(30)
        assert "did not answer within 30 s" in (await waiting)["structuredContent"]["error"]["message"]
        backend.opens.set_result(None)
        assert not (await call(scene)).get("isError")


async def test_a_server_that_hangs_during_resynchronization_can_still_be_used() -> None:
    backend = http()
    async with a_scene(one=backend) as scene:
        await scene.value("set_log_level", server="one", level="error")
        del backend.answers["logging/setLevel"]
        backend.link.break_off("the line went dead")
        await scene.clock.advance(31)
        assert not (await call(scene)).get("isError")


# Its messages.


async def test_a_crash_delivers_each_event_of_the_contract_once_and_in_order() -> None:
    backend = ScriptedBackend(is_process=True)
    async with a_scene(one=backend) as scene:
        assert scene.event_types() == ["process_started", "server_connected"]
        waiting = scene.start("execute_tool", server="one", tool="slow", timeout_ms=0)
        asked = await backend.next_asked()
        await scene.clock.advance(0)
        await waiting
        question = asyncio.ensure_future(
            backend.link.listener.handle_request("elicitation/create", {"message": "Sure?"}, asked.origin)
        )
        await settle()
        scene.events()
        backend.link.crash(7)
        await scene.clock.advance(1)
        with pytest.raises(RpcError):
            await question
        events = scene.events()
        assert [kind for kind, _ in events if not kind.startswith(("task", "elicitation"))] == [
            "process_crashed",
            "server_disconnected",
            "restarting",
            "restarted",
            "server_reconnected",
        ]
        told = dict(events)
        assert told["process_crashed"] == {"name": "one", "pid": 101, "exitCode": 7, "stderrTail": ["farewell"]}
        assert told["server_disconnected"] == {"name": "one", "reason": "exited with code 7"}
        assert told["restarting"] == {"name": "one", "attempt": 1, "delayMs": 1000}
        assert told["restarted"] == {"name": "one", "pid": 102}
        assert told["server_reconnected"] == {
            "name": "one",
            "attemptsTaken": 1,
            "kind": "restart",
            "invalidated": {"tasks": 1, "pendingRequests": 1},
        }
        assert [kind for kind, _ in events].count("task_failed") == 1
        assert told["elicitation_expired"]["reason"] == "disconnected"
        assert (await scene.value("list_tasks"))["tasks"] == []


async def test_a_lost_http_server_delivers_its_events_in_order_and_counts_its_attempts() -> None:
    backend = http()
    async with a_scene(one=backend) as scene:
        scene.events()
        backend.refuses = DOWN
        backend.link.break_off("the line went dead")
        await scene.clock.advance(1)
        backend.refuses = None
        await scene.clock.advance(2)
        assert scene.events() == [
            ("server_disconnected", {"name": "one", "reason": "the line went dead"}),
            ("server_reconnecting", {"name": "one", "attempt": 1, "nextRetryMs": 1000}),
            ("server_reconnecting", {"name": "one", "attempt": 2, "nextRetryMs": 2000}),
            (
                "server_reconnected",
                {
                    "name": "one",
                    "attemptsTaken": 2,
                    "kind": "restart",
                    "invalidated": {"tasks": 0, "pendingRequests": 0},
                },
            ),
        ]


@pytest.mark.parametrize(
    ("before", "after", "kind"), [("a", "a", "blip"), ("a", "b", "restart"), (None, None, "restart")]
)
async def test_a_server_that_kept_its_session_is_reported_as_a_blip_and_any_other_as_a_restart(
    before: str | None, after: str | None, kind: str
) -> None:
    backend = http()
    backend.identity = before
    async with a_scene(one=backend) as scene:
        scene.events()
        backend.identity = after
        backend.link.break_off("the line went dead")
        await scene.clock.advance(1)
        assert dict(scene.events())["server_reconnected"]["kind"] == kind


async def test_a_server_is_resumed_with_the_state_of_its_last_link() -> None:
    backend = http()
    async with a_scene(one=backend) as scene:
        backend.resumption = "where we were"
        backend.link.break_off("the line went dead")
        await scene.clock.advance(1)
        assert [dial.resumption for dial in backend.dials] == [None, "where we were"]


async def test_a_lost_server_without_callers_is_reconnected_only_after_the_delay() -> None:
    """An earlier caller waited for the first connect. An hour later, that is no reason to hurry a reconnect."""
    backend = http()
    backend.opens = asyncio.get_running_loop().create_future()
    async with a_scene(one=backend) as scene:
        waiting = scene.start("execute_tool", server="one", tool="echo")
        await settle()
        backend.opens.set_result(None)
        await waiting
        backend.link.break_off("the line went dead")
        await scene.clock.advance(0.9)
        assert len(backend.dials) == 1
        await scene.clock.advance(0.1)
        assert len(backend.dials) == 2


async def test_a_finished_task_keeps_its_result_when_its_server_disconnects() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend) as scene:
        promoted = scene.start("execute_tool", server="one", tool="slow", timeout_ms=0)
        asked = await backend.next_asked()
        await scene.clock.advance(0)
        task_id = (await promoted)["structuredContent"]["proxy_task"]["task_id"]
        asked.reply(**DONE)
        await settle()
        backend.link.break_off("the line went dead")
        await scene.clock.advance(60)
        assert (await scene.call("get_task_result", task_id=task_id))["content"][0] == DONE["content"][0]


# What a new link is given.


async def test_log_level_and_subscriptions_are_restored_before_callers_use_the_new_link() -> None:
    backend = http()
    backend.answers["resources/subscribe"] = lambda _: {}
    async with a_scene(one=backend) as scene:
        await scene.value("set_log_level", server="one", level="error")
        for uri in ("note://a", "note://b"):
            await scene.value("subscribe_resource", server="one", uri=uri)
        backend.link.break_off("the line went dead")
        await settle()
        backend.seen.clear()
        await call(scene)
        assert backend.seen[:4] == [
            ("logging/setLevel", {"level": "error"}),
            ("resources/subscribe", {"uri": "note://a"}),
            ("resources/subscribe", {"uri": "note://b"}),
            ("tools/call", {"name": "echo", "arguments": {}}),
        ]


async def test_a_resource_that_is_gone_does_not_stop_the_restoration_of_other_subscriptions() -> None:
    backend = http()
    backend.answers["resources/subscribe"] = lambda _: {}
    async with a_scene(one=backend) as scene:
        for uri in ("note://a", "note://b"):
            await scene.value("subscribe_resource", server="one", uri=uri)

        def refuse_a(params: JsonObject) -> JsonObject:
            if params["uri"] == "note://a":
                raise RpcError({"code": -32002, "message": "no such resource"})
            return {}

        backend.answers["resources/subscribe"] = refuse_a
        backend.seen.clear()
        backend.link.break_off("the line went dead")
        await scene.clock.advance(1)
        assert ("resources/subscribe", {"uri": "note://b"}) in backend.seen


async def test_a_list_that_changed_during_a_disconnect_raises_its_notification() -> None:
    backend = http()
    async with a_scene(one=backend) as scene:
        await scene.value("list_tools")
        await scene.value("list_prompts")
        backend.answers["tools/list"] = lambda _: {"tools": [{"name": "new", "inputSchema": {"type": "object"}}]}
        scene.events()
        backend.link.break_off("the line went dead")
        await scene.clock.advance(1)
        notified = [data["method"] for kind, data in scene.events() if kind == "notification"]
        assert notified == ["notifications/tools/list_changed"]
        assert [tool["name"] for tool in (await scene.value("list_tools"))["tools"]] == ["new"]


async def test_a_change_is_reported_even_if_the_server_disconnects_again_before_it_was_found() -> None:
    backend = http()
    async with a_scene(one=backend) as scene:
        await scene.value("list_tools")
        scene.events()
        del backend.answers["tools/list"]
        backend.link.break_off("the line went dead")
        await scene.clock.advance(1)
        await backend.next_asked("tools/list")
        backend.link.break_off("and again")
        backend.answers["tools/list"] = lambda _: {"tools": []}
        await scene.clock.advance(2)
        notified = [data["method"] for kind, data in scene.events() if kind == "notification"]
        assert notified == ["notifications/tools/list_changed"]


# reconnect_server.


async def bring_to(scene: Scene, backend: ScriptedBackend, state: str) -> None:
    """From connected to the given state."""
    match state:
        case "connecting":
            backend.opens = asyncio.get_running_loop().create_future()
            scene.start("reconnect_server", name="one")
        case "reconnecting":
            backend.refuses = DOWN
            backend.link.break_off("the line went dead")
        case "error":
            backend.refuses = CRASHED
            backend.link.crash()
            await scene.clock.advance(60)
        case "not_connected":
            await scene.clock.advance(10)
    await settle()
    assert scene.status("one") == state
    if backend.opens is not None:
        backend.opens.cancel()
    backend.refuses = backend.opens = None


@pytest.mark.parametrize("state", ["not_connected", "connecting", "connected", "reconnecting", "error"])
async def test_the_reconnect_request_works_at_once_from_every_state(state: str) -> None:
    backend = process()
    async with a_scene(limits=Limits(idle_stop_seconds=10), one=backend) as scene:
        await bring_to(scene, backend, state)
        view = await scene.value("reconnect_server", name="one")
        assert view["server"]["status"] == "connected"
        assert not (await call(scene)).get("isError")


async def test_the_reconnect_request_does_not_wait_for_a_hanging_attempt() -> None:
    backend = http()
    async with a_scene(one=backend) as scene:
        backend.opens = asyncio.get_running_loop().create_future()
        backend.link.break_off("the line went dead")
        await scene.clock.advance(1)
        backend.opens = None
        assert (await scene.value("reconnect_server", name="one"))["server"]["status"] == "connected"


async def test_concurrent_reconnect_requests_all_succeed() -> None:
    backend = http()
    async with a_scene(one=backend) as scene:
        replies = await asyncio.gather(*(scene.call("reconnect_server", name="one") for _ in range(5)))
        assert [reply.get("isError") for reply in replies] == [None] * 5, replies
        assert scene.status("one") == "connected"


async def test_a_call_during_a_requested_reconnect_waits_for_it() -> None:
    backend = http()
    async with a_scene(one=backend) as scene:
        backend.closes = asyncio.get_running_loop().create_future()
        reconnecting = scene.start("reconnect_server", name="one")
        await settle()
        waiting = scene.start("execute_tool", server="one", tool="echo")
        await settle()
        backend.closes.set_result(None)
        backend.closes = None
        assert not (await waiting).get("isError")
        assert not (await reconnecting).get("isError")


async def test_removing_a_server_during_its_connect_releases_all_waiters() -> None:
    backend = http()
    backend.opens = asyncio.get_running_loop().create_future()
    async with a_scene(one=backend) as scene:
        waiting = scene.start("execute_tool", server="one", tool="echo")
        connection = scene.session.connection("one")
        await settle()
        await scene.value("remove_server", name="one")
        assert (await waiting)["structuredContent"]["error"]["code"] == "TOOL_ERR_SERVER_DISCONNECTED"
        with pytest.raises(BackendDisconnected, match="the connection was closed"):
            await connection.ready()


async def test_removing_a_server_while_its_list_is_read_releases_all_waiters() -> None:
    backend = http()
    del backend.answers["tools/list"]
    async with a_scene(one=backend) as scene:
        listing = scene.start("list_tools")
        await backend.next_asked("tools/list")
        await scene.value("remove_server", name="one")
        assert (await listing)["structuredContent"]["errors"][0]["server"] == "one"


# Idle stop.


async def test_an_unused_server_is_stopped_and_starts_again_on_use() -> None:
    backend = process()
    async with a_scene(limits=Limits(idle_stop_seconds=300), one=backend) as scene:
        await call(scene)
        scene.events()
        await scene.clock.advance(299)
        assert scene.status("one") == "connected"
        await scene.clock.advance(1)
        assert scene.status("one") == "not_connected"
        assert scene.event_types() == ["process_stopped"]
        await scene.clock.advance(3600)
        assert len(backend.dials) == 1
        assert await scene.session.call("one", "tools/call", {"name": "echo"}, tool="echo") == DONE
        assert scene.event_types() == ["process_started", "server_connected"]


async def test_a_server_that_a_caller_waited_for_is_stopped_when_idle() -> None:
    backend = process()
    backend.opens = asyncio.get_running_loop().create_future()
    async with a_scene(limits=Limits(idle_stop_seconds=300), one=backend) as scene:
        waiting = scene.start("execute_tool", server="one", tool="echo")
        await settle()
        backend.opens.set_result(None)
        await waiting
        await scene.clock.advance(301)
        assert (scene.status("one"), len(backend.dials)) == ("not_connected", 1)


async def test_a_busy_server_is_not_stopped() -> None:
    backend = ScriptedBackend(is_process=True)
    async with a_scene(limits=Limits(idle_stop_seconds=300), one=backend) as scene:
        promoted = scene.start("execute_tool", server="one", tool="slow", timeout_ms=0)
        asked = await backend.next_asked()
        await scene.clock.advance(0)
        await promoted
        await scene.clock.advance(400)
        assert scene.status("one") == "connected"
        asked.reply(**DONE)
        await scene.clock.advance(300)
        assert scene.status("one") == "not_connected"


async def test_a_server_with_resource_subscriptions_is_not_stopped() -> None:
    backend = process()
    backend.answers |= {"resources/subscribe": lambda _: {}, "resources/unsubscribe": lambda _: {}}
    async with a_scene(limits=Limits(idle_stop_seconds=300), one=backend) as scene:
        await scene.value("subscribe_resource", server="one", uri="note://a")
        await scene.clock.advance(1000)
        assert scene.status("one") == "connected"
        await scene.value("unsubscribe_resource", server="one", uri="note://a")
        await scene.clock.advance(301)
        assert scene.status("one") == "not_connected"


async def test_a_server_whose_list_is_being_read_is_not_stopped() -> None:
    backend = process()
    del backend.answers["tools/list"]
    async with a_scene(limits=Limits(idle_stop_seconds=30), one=backend) as scene:
        listing = scene.start("list_tools")
        asked = await backend.next_asked("tools/list")
        await scene.clock.advance(40)
        asked.reply(tools=[])
        assert (await listing)["structuredContent"]["tools"] == []


async def test_a_call_while_its_server_stops_starts_the_server_again() -> None:
    backend = process()
    async with a_scene(limits=Limits(idle_stop_seconds=300), one=backend) as scene:
        backend.closes = asyncio.get_running_loop().create_future()
        await scene.clock.advance(300)
        waiting = scene.start("execute_tool", server="one", tool="echo")
        await settle()
        assert not waiting.done()
        backend.closes.set_result(None)
        backend.closes = None
        assert not (await waiting).get("isError")
        assert len(backend.dials) == 2


# The header by which a backend can tell callers apart.


async def test_the_caller_id_is_unique_per_session_and_backend_and_survives_reconnects() -> None:
    one, two = http(), http()
    keys = frozenset({SessionKey("local", KeyKind.NAME, "mine")})
    async with a_scene(one=one, two=two, keys=keys) as scene, a_scene(one=http(), two=http(), keys=keys) as other:
        one.link.break_off("the line went dead")
        await scene.clock.advance(1)
        await scene.value("reconnect_server", name="one")
        ids = {dial.caller_id for dial in one.dials}
        assert len(one.dials) == 3
        assert len(ids) == 1
        ids |= {dial.caller_id for dial in two.dials}
        ids |= {dial.caller_id for backend in other.backends.values() for dial in backend.dials}
        assert None not in ids
        assert len(ids) == 4


async def test_a_session_that_cannot_be_found_again_has_no_caller_id() -> None:
    one = http()
    async with a_scene(one=one):
        assert [dial.caller_id for dial in one.dials] == [None]
