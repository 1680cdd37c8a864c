import asyncio
from collections.abc import AsyncIterator, Awaitable
from dataclasses import replace
from typing import Any, TypeVar, cast

import pytest

from emceepee.backends.catalog import Kind
from emceepee.backends.connection import Connection
from emceepee.backends.dialer import Dialer
from emceepee.backends.link import Failure, LinkError, RpcError
from emceepee.errors import BackendDisconnected, EmceepeeError, ExecutionFailed, Unsupported
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.state.connection import ConnectionState
from emceepee.state.limits import Limits
from emceepee.state.tool_filter import ToolFilter
from support.fake_clock import START, FakeClock, settle
from support.scene import scripted_spec
from support.scripted_backend import ScriptedBackend, ScriptedDialer
from support.scripted_listener import ScriptedListener

T = TypeVar("T")


class Wire:
    """A connection to one scripted backend, and every state it went through."""

    def __init__(self, *, tools: ToolFilter | None = None, **limits: float) -> None:
        self.backend = ScriptedBackend()
        self.states: list[ConnectionState] = []
        self.tasks = TaskOwner("test")
        self.connection = Connection(
            replace(scripted_spec("demo"), tools=tools or ToolFilter()),
            ScriptedListener(),
            self.states.append,
            dialer=cast(Dialer, ScriptedDialer(demo=self.backend)),
            clock=FakeClock(),
            limits=Limits(**cast(Any, limits)),
        )

    @property
    def statuses(self) -> list[str]:
        return [str(state.status) for state in self.states]

    def holds_the_door(self) -> "asyncio.Future[None]":
        """From now on connecting waits for the test."""
        self.backend.opens = asyncio.get_running_loop().create_future()
        return self.backend.opens


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    made = Wire()
    yield made
    async with asyncio.timeout(5):
        await made.tasks.close(within=5)
        await made.connection.close()


async def soon(work: Awaitable[T]) -> T:
    async with asyncio.timeout(5):
        return await work


async def failure(work: Awaitable[object]) -> EmceepeeError:
    with pytest.raises(EmceepeeError) as caught:
        await soon(work)
    return caught.value


async def test_nothing_is_opened_before_it_is_needed(wire: Wire) -> None:
    await settle()
    assert (wire.states, wire.backend.links) == ([], [])
    assert repr(wire.connection) == "<Connection demo not_connected>"
    assert (wire.connection.facts, wire.connection.process, wire.connection.known_tools()) == (None, None, None)


async def test_being_ready_opens_it_once_for_all_who_wait(wire: Wire) -> None:
    links = await soon(asyncio.gather(*(wire.connection.ready() for _ in range(5))))
    assert links == [wire.backend.link] * 5
    assert len(wire.backend.links) == 1
    assert wire.statuses == ["connecting", "connected"]
    assert wire.connection.state.connected_at == START
    assert wire.connection.facts is wire.backend.facts
    assert repr(wire.connection) == "<Connection demo connected>"


async def test_starting_twice_opens_once(wire: Wire) -> None:
    wire.connection.start()
    wire.connection.start()
    await soon(wire.connection.ready())
    wire.connection.start()
    await settle()
    assert len(wire.backend.links) == 1


@pytest.mark.parametrize(
    "refusal",
    [LinkError(Failure.UNREACHABLE, "no route to host"), RpcError({"code": -1, "message": "no route to host"})],
)
async def test_a_backend_that_cannot_be_opened_says_why_to_all_who_wait(wire: Wire, refusal: Any) -> None:
    wire.backend.refuses = refusal
    errors = [await failure(wire.connection.ready()) for _ in range(2)]
    assert [error.body() for error in errors] == [
        {
            "code": "TOOL_ERR_SERVER_DISCONNECTED",
            "message": 'Server "demo" could not be connected: no route to host. '
            "Try reconnect_server, or remove it and add it with other settings.",
            "details": {"server": "demo", "status": "error"},
        }
    ] * 2
    assert wire.statuses == ["connecting", "error"]


async def test_a_backend_that_does_not_answer_in_time_is_given_up() -> None:
    wire = Wire(connect_seconds=0.02)
    wire.holds_the_door()
    error = await failure(wire.connection.ready())
    assert "could not be connected: it did not answer within 0.02 s." in str(error)
    await wire.connection.close()


async def test_a_waiter_who_leaves_does_not_stop_the_opening(wire: Wire) -> None:
    door = wire.holds_the_door()
    leaving = wire.tasks.spawn(wire.connection.ready())
    await settle()
    leaving.cancel()
    await settle()
    door.set_result(None)
    await soon(wire.connection.ready())
    assert wire.statuses == ["connecting", "connected"]


async def test_a_line_that_is_lost_is_told_with_its_reason_and_stays_lost(wire: Wire) -> None:
    await soon(wire.connection.ready())
    wire.backend.link.break_off("exited with code 3")
    await settle()
    assert wire.statuses == ["connecting", "connected", "disconnected"]
    error = await failure(wire.connection.ready())
    assert 'Server "demo" is disconnected: exited with code 3.' in str(error)
    assert wire.connection.facts is None


async def test_reconnecting_brings_back_a_lost_line(wire: Wire) -> None:
    await soon(wire.connection.ready())
    wire.backend.link.break_off("gone")
    await settle()
    link = await soon(wire.connection.reconnect())
    assert link is wire.backend.link
    assert len(wire.backend.links) == 2
    assert wire.statuses[-2:] == ["connecting", "connected"]
    assert wire.connection.state.reason is None


async def test_reconnecting_a_live_line_closes_the_old_one_first(wire: Wire) -> None:
    old = await soon(wire.connection.ready())
    new = await soon(wire.connection.reconnect())
    assert old is not new
    assert old.closed.done()
    assert not new.closed.done()


async def test_reconnecting_from_an_error_tries_again(wire: Wire) -> None:
    wire.backend.refuses = LinkError(Failure.UNREACHABLE, "down")
    await failure(wire.connection.ready())
    await failure(wire.connection.reconnect())
    wire.backend.refuses = None
    await soon(wire.connection.reconnect())
    assert wire.statuses == ["connecting", "error"] * 2 + ["connecting", "connected"]


async def test_reconnecting_while_connecting_begins_anew(wire: Wire) -> None:
    wire.holds_the_door()
    waiting = wire.tasks.spawn(failure(wire.connection.ready()))
    await settle()
    wire.backend.opens = None
    await soon(wire.connection.reconnect())
    assert isinstance(await soon(waiting), BackendDisconnected)
    assert wire.connection.is_connected


async def test_reconnecting_right_after_the_start_begins_anew(wire: Wire) -> None:
    """The opening had no chance to run at all before it is given up."""
    wire.connection.start()
    await soon(wire.connection.reconnect())
    assert wire.connection.is_connected
    assert len(wire.backend.links) == 1


async def test_two_who_reconnect_at_once_share_one_fresh_line(wire: Wire) -> None:
    await soon(wire.connection.ready())
    first, second = await soon(asyncio.gather(wire.connection.reconnect(), wire.connection.reconnect()))
    assert first is second is wire.backend.link
    assert len(wire.backend.links) == 2
    assert wire.connection.is_connected


async def test_closing_leaves_no_link_and_no_task(wire: Wire) -> None:
    link = await soon(wire.connection.ready())
    await soon(wire.connection.close())
    assert link.closed.done()
    assert wire.statuses[-1] == "disconnected"
    assert len(wire.connection._tasks) == 0


async def test_closing_while_connecting_tells_those_who_wait(wire: Wire) -> None:
    wire.holds_the_door()
    waiting = wire.tasks.spawn(failure(wire.connection.ready()))
    await settle()
    await soon(wire.connection.close())
    assert "the connection was closed" in str(await soon(waiting))
    assert wire.backend.links == []


async def test_a_request_returns_the_raw_result_and_carries_its_origin(wire: Wire) -> None:
    asking = wire.tasks.spawn(wire.connection.request("tools/call", {"name": "echo"}, origin="the call"))
    asked = await wire.backend.next_asked()
    assert (asked.params, asked.origin) == ({"name": "echo"}, "the call")
    asked.reply(content=[], unknown=None)
    assert await soon(asking) == {"content": [], "unknown": None}


async def test_a_refused_request_is_told_with_the_backends_own_error(wire: Wire) -> None:
    asking = wire.tasks.spawn(failure(wire.connection.request("tools/call", {"name": "x"})))
    (await wire.backend.next_asked()).refuse(-32602, "bad argument")
    error = await soon(asking)
    assert isinstance(error, ExecutionFailed)
    assert str(error) == 'Server "demo" answered tools/call with error -32602: bad argument'
    assert error.details == {"server": "demo", "error": {"code": -32602, "message": "bad argument"}}


async def test_a_request_whose_line_breaks_says_that_it_may_have_run(wire: Wire) -> None:
    asking = wire.tasks.spawn(failure(wire.connection.request("tools/call", {"name": "x"})))
    await wire.backend.next_asked()
    wire.backend.link.break_off("exited with code 1")
    error = await soon(asking)
    assert isinstance(error, BackendDisconnected)
    assert "was lost during tools/call: exited with code 1. It is not known whether the request ran." in str(error)


@pytest.mark.parametrize(
    ("trouble", "code"),
    [
        (Failure.CLOSED, "TOOL_ERR_SERVER_DISCONNECTED"),
        (Failure.UNREACHABLE, "TOOL_ERR_SERVER_DISCONNECTED"),
        (Failure.SESSION_LOST, "TOOL_ERR_SERVER_DISCONNECTED"),
        (Failure.PROTOCOL, "TOOL_ERR_EXECUTION_FAILED"),
        (Failure.REFUSED, "TOOL_ERR_EXECUTION_FAILED"),
    ],
)
async def test_each_failure_of_a_link_has_its_code(wire: Wire, trouble: Failure, code: str) -> None:
    def fail(_: JsonObject) -> JsonObject:
        raise LinkError(trouble, "odd")

    wire.backend.answers["prompts/get"] = fail
    assert (await failure(wire.connection.request("prompts/get", {}))).code == code


async def test_only_permitted_tools_are_listed() -> None:
    wire = Wire(tools=ToolFilter(("e*",), ("evil",)))
    names = ["echo", "evil", "slow"]
    wire.backend.answers["tools/list"] = lambda _: {"tools": [{"name": name} for name in names]}
    assert await soon(wire.connection.entries(Kind.TOOLS)) == [{"name": "echo"}]
    assert wire.connection.known_tools() == [{"name": "echo"}]
    await wire.connection.close()


async def test_a_list_that_does_not_come_in_time_is_a_failure_that_names_it() -> None:
    wire = Wire(request_seconds=0.02)
    del wire.backend.answers["prompts/list"]
    error = await failure(wire.connection.entries(Kind.PROMPTS))
    assert str(error) == 'Server "demo" did not answer prompts/list within 0.02 s.'
    await wire.connection.close()


async def test_a_refused_list_is_told_in_the_words_of_a_caller(wire: Wire) -> None:
    def fail(_: JsonObject) -> JsonObject:
        raise RpcError({"code": -5, "message": "no"})

    wire.backend.answers["tools/list"] = fail
    assert (
        str(await failure(wire.connection.entries(Kind.TOOLS))) == 'Server "demo" answered tools/list with error -5: no'
    )


async def test_lists_are_asked_for_anew_after_a_change_and_after_a_reconnect(wire: Wire) -> None:
    def asks() -> int:
        return sum(method == "tools/list" for method, _ in wire.backend.seen)

    await soon(wire.connection.entries(Kind.TOOLS))
    await soon(wire.connection.entries(Kind.TOOLS))
    assert asks() == 1
    wire.connection.changed("notifications/tools/list_changed")
    await soon(wire.connection.entries(Kind.TOOLS))
    assert asks() == 2
    await soon(wire.connection.reconnect())
    await soon(wire.connection.entries(Kind.TOOLS))
    assert asks() == 3


def levels(wire: Wire) -> list[Any]:
    return [params["level"] for method, params in wire.backend.seen if method == "logging/setLevel"]


async def test_a_log_level_is_set_and_restored_on_reconnect(wire: Wire) -> None:
    await soon(wire.connection.set_log_level("debug"))
    assert levels(wire) == ["debug"]
    await soon(wire.connection.reconnect())
    assert levels(wire) == ["debug", "debug"]


async def test_a_log_level_of_a_modern_backend_rides_on_the_link_and_is_restored() -> None:
    wire = Wire()
    wire.backend.facts.is_modern = True
    await soon(wire.connection.set_log_level("warning"))
    assert wire.backend.link.log_level == "warning"
    await soon(wire.connection.reconnect())
    assert wire.backend.link.log_level == "warning"
    assert levels(wire) == []
    await wire.connection.close()


async def test_a_backend_without_logging_says_so_and_nothing_is_kept(wire: Wire) -> None:
    del wire.backend.facts.capabilities["logging"]
    error = await failure(wire.connection.set_log_level("debug"))
    assert isinstance(error, Unsupported)
    assert wire.connection.log_level is None


async def test_a_log_level_that_cannot_be_restored_does_not_hinder_the_connection(wire: Wire) -> None:
    await soon(wire.connection.set_log_level("debug"))

    def fail(_: JsonObject) -> JsonObject:
        raise RpcError({"code": -1, "message": "no more"})

    wire.backend.answers["logging/setLevel"] = fail
    await soon(wire.connection.reconnect())
    assert wire.connection.is_connected


async def test_a_backend_that_never_answers_the_log_level_is_not_waited_for_for_ever() -> None:
    wire = Wire(request_seconds=0.02)
    await soon(wire.connection.set_log_level("debug"))
    del wire.backend.answers["logging/setLevel"]
    await soon(wire.connection.reconnect())
    assert wire.connection.is_connected
    error = await failure(wire.connection.set_log_level("info"))
    assert str(error) == 'Server "demo" did not answer logging/setLevel within 0.02 s.'
    await wire.connection.close()


async def test_closing_while_the_log_level_is_restored_tells_those_who_wait(wire: Wire) -> None:
    await soon(wire.connection.set_log_level("debug"))
    wire.backend.link.break_off("gone")
    await settle()
    del wire.backend.answers["logging/setLevel"]
    waiting = wire.tasks.spawn(failure(wire.connection.reconnect()))
    await wire.backend.next_asked("logging/setLevel")
    await soon(wire.connection.close())
    assert "the connection was closed" in str(await soon(waiting))
    assert wire.backend.link.closed.done()
