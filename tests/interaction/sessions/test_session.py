import asyncio
import gc
import weakref

import pytest

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.backends.spec import BackendSpec, HttpTarget
from emceepee.errors import BackendDisconnected, EmceepeeError, ExecutionFailed, InvalidArguments, UnknownBackend
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.sessions.session import Session
from emceepee.telemetry.spans import Span
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend, ScriptedDialer
from support.fakes.clock import FakeClock, settle
from support.sessions.another_session import another_session
from support.sessions.event_delivery import take
from support.sessions.scene import a_scene, scripted_spec
from support.sessions.session_parts import session_parts

NONE: list[BackendSpec] = []


async def test_opening_a_session_connects_no_servers_and_waking_it_connects_all_at_once() -> None:
    backends = {"a": ScriptedBackend(), "b": ScriptedBackend()}
    registry = ServerRegistry([scripted_spec(name) for name in backends])
    session = Session("01S", "ann", session_parts(registry, ScriptedDialer(**backends), FakeClock()))
    await session.open()
    await settle()
    assert [backend.links for backend in backends.values()] == [[], []]
    for _ in range(2):
        session.wake()
    await settle()
    assert [len(backend.links) for backend in backends.values()] == [1, 1]
    assert repr(session) == "<Session 01S awake servers=2 calls=0 tasks=0 questions=0>"
    await session.close()


async def test_closing_a_session_ends_its_links_and_its_calls() -> None:
    backend = ScriptedBackend()
    async with a_scene(demo=backend) as scene:
        call = scene.start("execute_tool", server="demo", tool="slow")
        await backend.next_asked()
    async with asyncio.timeout(5):
        await asyncio.wait({call})
    assert backend.link.closed.done()
    assert len(backend.cancelled) == 1


async def test_a_server_is_added_only_after_it_connects() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        backend.opens = asyncio.get_running_loop().create_future()
        adding = asyncio.create_task(scene.session.servers.add(scripted_spec("demo")))
        await settle()
        assert scene.session.connections == []
        backend.opens.set_result(None)
        async with asyncio.timeout(5):
            connection = await adding
        assert scene.session.connections == [connection]


async def test_a_server_that_fails_to_connect_leaves_no_trace_and_can_be_added_again() -> None:
    backend = ScriptedBackend()
    backend.refuses = LinkError(LinkFailure.UNREACHABLE, "exited with code 1; its stderr: no token")
    async with a_scene(specs=NONE, demo=backend) as scene:
        with pytest.raises(ExecutionFailed, match=r"was not added, because .*no token") as caught:
            await scene.session.servers.add(scripted_spec("demo"))
        assert caught.value.details == {"server": "demo", "url": "http://demo.test/mcp"}
        assert scene.session.connections == []
        with pytest.raises(UnknownBackend):
            scene.session.buffers_of("demo")
        backend.refuses = None
        assert (await scene.session.servers.add(scripted_spec("demo"))).is_connected


async def test_the_repr_of_a_session_shows_its_state() -> None:
    backend = ScriptedBackend()
    async with a_scene(is_awake=False, demo=backend) as scene:
        session = scene.session
        name = f"<Session {session.session_id}"
        assert repr(session) == f"{name} asleep servers=1 calls=0 tasks=0 questions=0>"
        session.wake()
        call = asyncio.create_task(session.call("demo", "tools/call", {"name": "x"}, tool="x", timeout=None))
        asked = await backend.next_asked()
        assert repr(session) == f"{name} awake servers=1 calls=1 tasks=0 questions=0>"
        question = asyncio.create_task(backend.link.listener.handle_request("elicitation/create", {}, asked.origin))
        await settle()
        assert repr(session) == f"{name} awake servers=1 calls=1 tasks=1 questions=1>"
        await call
    assert repr(session) == f"{name} closed servers=1 calls=0 tasks=0 questions=0>"
    await asyncio.wait([question], timeout=5)


async def test_a_canceled_add_leaves_no_trace() -> None:
    backend = ScriptedBackend()
    async with a_scene(specs=NONE, demo=backend) as scene:
        backend.opens = asyncio.get_running_loop().create_future()
        adding = asyncio.create_task(scene.session.servers.add(scripted_spec("demo")))
        await settle()
        adding.cancel()
        await settle()
        assert adding.cancelled()
        backend.opens.set_result(None)
        await settle()
        assert (scene.session.connections, backend.links) == ([], []), "the connecting was given up too"
        backend.opens = None
        await scene.session.servers.add(scripted_spec("demo"))


async def test_adding_the_same_configuration_again_returns_the_same_server() -> None:
    backend = ScriptedBackend()
    async with a_scene(demo=backend) as scene:
        connection = await scene.session.servers.add(scripted_spec("demo"))
        assert len(backend.links) == 1
        backend.link.break_off("gone")
        await settle()
        assert await scene.session.servers.add(scripted_spec("demo")) is connection
        assert connection.is_connected
        assert len(backend.links) == 2


async def test_a_name_in_use_with_another_configuration_is_refused_and_the_server_stays() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene:
        other = BackendSpec(name="demo", target=HttpTarget(url="http://other.test"))
        with pytest.raises(InvalidArguments, match='The name "demo" is in use'):
            await scene.session.servers.add(other)
        assert scene.session.connection("demo").is_connected


async def test_a_removed_server_is_disconnected_and_its_buffers_are_deleted() -> None:
    backend = ScriptedBackend()
    async with a_scene(demo=backend) as scene:
        backend.link.listener.handle_output("hello", "stderr")
        await scene.session.servers.remove("demo")
        assert backend.link.closed.done()
        assert (scene.session.connections, scene.session.buffers_of(None)) == ([], [])
        with pytest.raises(UnknownBackend):
            await scene.session.servers.remove("demo")


async def test_every_session_of_the_principal_including_the_caller_is_notified_of_a_removed_server() -> None:
    async with a_scene(demo=ScriptedBackend()) as scene, another_session(scene) as other:
        scene.events()
        await scene.session.servers.remove("demo")
        assert scene.events() == [("server_removed", {"name": "demo"})]
        assert [event.type for event in take(other.activity).events] == ["server_removed"]


async def test_a_connected_server_is_reported_with_its_capabilities() -> None:
    backend = ScriptedBackend()
    backend.facts.capabilities = {"tools": {}, "logging": {}}
    async with a_scene(demo=backend) as scene:
        assert scene.events() == [("server_connected", {"name": "demo", "capabilities": {"tools": {}, "logging": {}}})]


async def test_a_call_in_flight_fails_when_its_server_is_removed() -> None:
    backend = ScriptedBackend()
    async with a_scene(demo=backend) as scene:
        call = asyncio.create_task(_disconnected(scene.session))
        await backend.next_asked()
        await scene.session.servers.remove("demo")
        async with asyncio.timeout(5):
            assert await call


async def _disconnected(session: Session) -> bool:
    with pytest.raises(BackendDisconnected):
        await session.call("demo", "tools/call", {"name": "x"}, tool="x", timeout=None)
    return True


async def test_a_caller_that_disconnects_cancels_its_backend_call() -> None:
    backend = ScriptedBackend()
    async with a_scene(demo=backend) as scene:
        call = asyncio.create_task(scene.session.call("demo", "tools/call", {"name": "x"}, tool="x", timeout=None))
        asked = await backend.next_asked()
        call.cancel()
        await settle()
        assert call.cancelled()
        assert backend.cancelled == [asked]


async def test_a_call_waits_for_a_server_that_is_still_connecting() -> None:
    backend = ScriptedBackend()
    backend.answers["tools/call"] = lambda _: {"content": []}
    async with a_scene(specs=[scripted_spec("demo")], demo=backend) as scene:
        backend.opens = asyncio.get_running_loop().create_future()
        reconnecting = asyncio.create_task(scene.session.connection("demo").reconnect())
        await settle()
        call = asyncio.create_task(scene.session.call("demo", "tools/call", {"name": "x"}, tool="x", timeout=None))
        await settle()
        assert not call.done()
        backend.opens.set_result(None)
        async with asyncio.timeout(5):
            assert await call == {"content": []}
            await reconnecting


async def test_an_internal_error_during_a_call_fails_the_call() -> None:
    def broken(_: JsonObject) -> JsonObject:
        raise OverflowError("a defect")

    backend = ScriptedBackend()
    backend.answers["tools/call"] = broken
    async with a_scene(demo=backend) as scene, asyncio.timeout(5):
        with pytest.raises(EmceepeeError, match="failed inside emceepee"):
            await scene.session.call("demo", "tools/call", {"name": "x"}, tool="x", timeout=None)


async def test_progress_reaches_only_its_own_call_and_hides_the_internal_token() -> None:
    backend = ScriptedBackend()
    heard: list[tuple[str, JsonObject]] = []
    async with a_scene(demo=backend) as scene:
        calls = [
            asyncio.create_task(
                scene.session.call(
                    "demo",
                    "tools/call",
                    {"name": name},
                    tool=name,
                    timeout=None,
                    on_progress=lambda params, name=name: heard.append((name, params)),  # type: ignore[misc]  # mypy cannot infer the default's type
                )
            )
            for name in ("a", "b")
        ]
        first, second = await backend.next_asked(), await backend.next_asked()
        notified = backend.link.listener.handle_notification
        notified("notifications/progress", {"progressToken": 1, "progress": 0.5, "message": None}, second.origin)
        notified("notifications/progress", {"progressToken": 9, "progress": 1}, None)
        assert heard == [(second.params["name"], {"progress": 0.5, "message": None})]
        for asked in (first, second):
            asked.reply(content=[])
        async with asyncio.timeout(5):
            await asyncio.gather(*calls)
        assert scene.session.buffers_of(None) == []


async def test_a_server_that_one_session_adds_is_available_in_other_sessions_of_the_principal() -> None:
    backend = ScriptedBackend()
    async with (
        a_scene(specs=NONE, demo=backend) as scene,
        another_session(scene) as other,
        another_session(scene, "bob") as stranger,
    ):
        await scene.session.servers.add(scripted_spec("demo"))
        assert [item.spec.name for item in other.connections] == ["demo"]
        assert stranger.connections == []
        assert len(backend.links) == 1, "it connects when it is used"
        async with asyncio.timeout(5):
            await other.connection("demo").ready()
            await other.servers.remove("demo")
        assert (scene.session.connections, other.connections) == ([], [])
        assert all(link.closed.done() for link in backend.links)


async def ended_session() -> tuple[Span, "weakref.ref[Session]"]:
    """One in which a call was made, and the span of that call."""
    async with a_scene(demo=ScriptedBackend()) as scene:
        call = scene.start("execute_tool", server="demo", tool="x")
        (await scene.backends["demo"].next_asked()).reply(content=[])
        await call
        return scene.session.journal.since(0)[-1], weakref.ref(scene.session)


async def test_an_ended_session_is_not_kept_in_memory_by_spans_that_outlive_it() -> None:
    """Timers and pooled connections keep the context of the request in which they began, and with it the span."""
    span, session = await ended_session()
    await settle()
    gc.collect()
    assert session() is None
    span.touch()  # nobody looks any more
