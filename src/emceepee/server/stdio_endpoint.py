"""The stdio door: one process, one caller, one session."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from mcp.server.lowlevel import Server

from emceepee.codec import encode
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.server.conversation import Conversation
from emceepee.server.dispatch import CallTool
from emceepee.server.garbage import spare_what_stays
from emceepee.server.kernel import CallerState
from emceepee.server.stdio_pipes import LineReader, LineWriter
from emceepee.server.stop_signals import FINISH_SECONDS, LET_GO_SECONDS, stop_signals
from emceepee.sessions.session import Session

END_GRACE = 0.5  # after end of input, for answers that are nearly there: someone may have piped requests in
FLUSH_SECONDS = 1.0  # for the last bytes to reach a caller that still reads


async def serve_stdio(
    kernel: Server[CallerState],
    session: Session,
    *,
    stdin: int,
    stdout: int,
    longest_line: int,
    call_tool: CallTool,
    on_first_answer: Callable[[], None] | None = None,
) -> None:
    """Serve until end of input or a signal to stop. `on_first_answer` is for what can wait until then."""
    spare_what_stays()
    reader, writer = await LineReader.on(stdin, longest=longest_line), await LineWriter.on(stdout)

    def send(message: JsonObject | list[JsonObject]) -> None:
        nonlocal on_first_answer
        writer.write(encode(message))
        if on_first_answer is not None:
            do, on_first_answer = on_first_answer, None
            do()

    conversation = Conversation(kernel, session, send, call_tool)
    owner = TaskOwner("stdio")
    stopped, hurried = asyncio.Event(), asyncio.Event()
    _on_signals(lambda: hurried.set() if stopped.is_set() else stopped.set())
    listening = owner.spawn(_listen(reader, writer, conversation), name="listen")
    stopping = owner.spawn(stopped.wait(), name="signals")
    try:
        await asyncio.wait({listening, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if stopped.is_set():
            await conversation.drain(finish=FINISH_SECONDS, let_go=LET_GO_SECONDS, hurried=hurried)
        else:
            await conversation.finish(within=END_GRACE)
    finally:
        await owner.close(within=END_GRACE)
        await conversation.close()
        await writer.flush(within=FLUSH_SECONDS)
        reader.close()


async def _listen(reader: LineReader, writer: LineWriter, conversation: Conversation) -> None:
    while (line := await reader.read()) != b"":
        await conversation.hear(line)
        await writer.drain()
        if writer.is_broken:
            return


def _on_signals(stop: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        with suppress(NotImplementedError, RuntimeError):  # not in a thread, not on every platform
            loop.add_signal_handler(number, stop)
