"""The stdio endpoint: one process, one caller, one session."""

import asyncio
from collections.abc import Callable

from emceepee.lifecycle import TaskOwner
from emceepee.server.dispatch import Tools
from emceepee.server.garbage_collector import freeze_startup_objects
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.stdio.pipes import LineReader, LineWriter
from emceepee.server.stdio.stdio_conversation import StdioConversation
from emceepee.server.stop_signals import FINISH_SECONDS, LET_GO_SECONDS, on_stop_signals
from emceepee.sessions.session import Session
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

END_GRACE = 0.5  # after end of input, for nearly finished answers: the requests may have been piped in
FLUSH_SECONDS = 1.0  # to flush the last bytes to a caller that still reads


async def serve_stdio(
    methods: ProtocolMethods,
    tools: Tools,
    session: Session,
    *,
    stdin: int,
    stdout: int,
    longest_line: int,
    on_first_answer: Callable[[], None] | None = None,
) -> None:
    """Serve until end of input or a stop signal. `on_first_answer` starts work that can wait until then."""
    freeze_startup_objects()
    reader, writer = await LineReader.on(stdin, longest=longest_line), await LineWriter.on(stdout)

    def send(message: JsonObject | list[JsonObject]) -> None:
        nonlocal on_first_answer
        writer.write(encode(message))
        if on_first_answer is not None:
            run, on_first_answer = on_first_answer, None
            run()

    conversation = StdioConversation(methods, session, send, tools)
    owner = TaskOwner("stdio")
    stopped, hurried = asyncio.Event(), asyncio.Event()
    on_stop_signals(lambda: hurried.set() if stopped.is_set() else stopped.set())
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


async def _listen(reader: LineReader, writer: LineWriter, conversation: StdioConversation) -> None:
    while (line := await reader.read()) != b"":
        await conversation.receive(line)
        await writer.drain()
        if writer.is_broken:
            return
