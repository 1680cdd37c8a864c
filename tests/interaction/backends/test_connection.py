"""The repr of a connection shows its state."""

import asyncio

from emceepee.backends.connection import Connection
from emceepee.backends.link import LinkError, LinkFailure
from emceepee.state.limits import Limits
from emceepee.wire.json_types import JsonObject
from support.backends.scripted_backend import ScriptedBackend
from support.fakes.clock import settle
from support.sessions.scene import Scene, a_scene

DOWN = LinkError(LinkFailure.UNREACHABLE, "connection refused", may_have_run=False)


def printed(scene: Scene) -> tuple[str, str]:
    """The connection and its supervisor; how the link looks is its own matter."""
    connection: Connection = scene.session.connection("one")
    supervisor = connection._supervisor
    return repr(connection), repr(supervisor).replace(repr(supervisor.link), "LINK")


async def test_the_repr_of_a_connection_shows_the_state_and_the_time_of_the_next_attempt() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend, is_awake=False) as scene:
        assert printed(scene) == ("<Connection one not_connected>", "<Supervisor one Idle requests=0>")
        backend.opens = asyncio.get_running_loop().create_future()
        call = scene.start("execute_tool", server="one", tool="echo")
        await settle()
        assert printed(scene) == ("<Connection one connecting>", "<Supervisor one Opening requests=0>")
        backend.opens.set_result(None)
        asked = await backend.next_asked()
        assert printed(scene) == ("<Connection one connected requests=1>", "<Supervisor one Up LINK requests=1>")
        asked.reply(content=[])
        await call
        backend.refuses = DOWN
        backend.link.break_off("it fell")
        await scene.clock.advance(1.5)
        assert printed(scene)[0] == "<Connection one reconnecting attempt=2 in 1.5 s>"
        await scene.value("remove_server", name="one")


async def test_the_repr_of_a_connection_shows_its_next_state_while_a_link_closes() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend, limits=Limits(idle_stop_seconds=300)) as scene:
        backend.closes = asyncio.get_running_loop().create_future()
        await scene.clock.advance(300)
        assert printed(scene) == ("<Connection one not_connected>", "<Supervisor one Closing then Idle requests=0>")
        backend.closes.set_result(None)


async def test_a_link_that_opens_after_its_connection_was_closed_is_closed_once() -> None:
    backend = ScriptedBackend()
    async with a_scene(one=backend, is_awake=False) as scene:
        connection: Connection = scene.session.connection("one")
        for pause in range(12):  # turns of the loop between the two
            connection.start()
            await settle(pause)
            await connection.rest()
            assert repr(connection) == "<Connection one not_connected>"
            assert all(link.closed.done() for link in backend.links)
        assert backend.links


async def test_an_internal_error_in_a_connection_leaves_no_waiter_and_no_open_link() -> None:
    backend = ScriptedBackend()

    async def broken(_: object) -> None:
        raise ZeroDivisionError("a defect")

    async with a_scene(one=backend, is_awake=False) as scene:
        connection: Connection = scene.session.connection("one")
        connection._supervisor._owner.prepare_link = broken  # type: ignore[method-assign, assignment]  # the defect
        error: JsonObject = await scene.error("execute_tool", server="one", tool="echo")
        assert "ZeroDivisionError: a defect" in error["message"]
        assert scene.status("one") == "error"
        assert backend.link.closed.done()
