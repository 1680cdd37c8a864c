import asyncio
import json
from typing import Any, cast

from emceepee.backends.process.child import Child
from emceepee.backends.process.child_processes import ChildProcesses
from emceepee.backends.process.stdio_link import ANSWERS_UNREAD, UNREAD_SECONDS, StdioLink
from emceepee.state.connection.connection_state import LinkEnd, LinkEndKind
from support.backends.scripted_listener import ScriptedListener
from support.fakes.clock import FakeClock, settle

MOST = 3


class FullPipe:
    """A child that reads nothing until the test allows it."""

    def __init__(self) -> None:
        self.reads: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.turns: list[bool] = []  # each change between reading and paused
        self.written: list[Any] = []

    async def write(self, data: bytes) -> None:
        await asyncio.shield(self.reads)
        self.written.append(json.loads(data))

    def pause_reading(self) -> None:
        self.turns.append(False)

    def resume_reading(self) -> None:
        self.turns.append(True)


def a_link(clock: FakeClock) -> tuple[StdioLink, FullPipe]:
    link, child = StdioLink(ScriptedListener(), ChildProcesses(), clock, most_requests=MOST), FullPipe()
    link._child = cast(Child, child)
    return link, child


async def asks(link: StdioLink, count: int) -> None:
    for number in range(count):
        link._handle_line(json.dumps({"jsonrpc": "2.0", "id": number, "method": "ping"}).encode())
    await settle()


async def test_a_process_that_sends_requests_without_reading_answers_is_paused_until_it_reads() -> None:
    link, child = a_link(FakeClock())
    await asks(link, 2 * MOST - 1)
    assert child.turns == []
    await asks(link, 1)
    assert child.turns == [False]
    child.reads.set_result(None)
    await settle()
    assert child.turns == [False, True]
    assert len(child.written) == 2 * MOST
    await link._tasks.close(within=5)


async def test_a_process_that_never_reads_its_answers_is_closed_with_the_reason() -> None:
    clock = FakeClock()
    link, child = a_link(clock)
    await asks(link, 2 * MOST)
    await clock.advance(UNREAD_SECONDS - 1)
    assert not link.closed.done()
    await clock.advance(1)
    assert link.closed.result().reason == ANSWERS_UNREAD
    assert child.turns == [False]
    await link._tasks.close(within=5)


async def test_the_repr_of_a_stdio_link_shows_its_process_its_requests_and_how_it_ended() -> None:
    link = StdioLink(ScriptedListener(), ChildProcesses(), FakeClock(), most_requests=MOST)
    assert repr(link) == "<StdioLink pid=None requests=0 open>"
    link.end(LinkEnd(LinkEndKind.LOST, "it fell"))
    assert repr(link) == "<StdioLink pid=None requests=0 lost: it fell>"
    await link.close()
