"""A small server on standard input and output."""

import asyncio

from emceepee.lifecycle import TaskOwner
from emceepee.miniserver.server_conversation import ServerConversation
from emceepee.server.stdio.pipes import LineReader, LineWriter
from emceepee.server.stop_signals import on_stop_signals
from emceepee.wire.codec import Unreadable, decode, encode
from emceepee.wire.json_rpc import error_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.line_splitter import TooLongLine
from emceepee.wire.protocol import PARSE_ERROR

LONGEST_LINE = 64 << 20
END_SECONDS = 10.0  # after end of input, for pending answers: the requests may have been piped in
FLUSH_SECONDS = 1.0  # for the last bytes to reach a client that still reads


class _LineChannel:
    takes_questions = True

    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer

    def send(self, message: JsonObject) -> None:
        self._writer.write(encode(message))

    async def drain(self) -> None:
        await self._writer.drain()


async def serve_on_stdio(conversation: ServerConversation, *, stdin: int, stdout: int) -> None:
    """Serve until end of input or a stop signal."""
    reader, writer = await LineReader.on(stdin, longest=LONGEST_LINE), await LineWriter.on(stdout)
    owner, stopped = TaskOwner("stdio"), asyncio.Event()
    on_stop_signals(stopped.set)
    listening = owner.spawn(_listen(reader, writer, conversation), name="listen")
    stopping = owner.spawn(stopped.wait(), name="signals")
    try:
        await asyncio.wait({listening, stopping}, return_when=asyncio.FIRST_COMPLETED)
        if not stopped.is_set():
            await conversation.finish(within=END_SECONDS)
    finally:
        await owner.close()
        await conversation.close()
        await writer.flush(within=FLUSH_SECONDS)
        reader.close()


async def _listen(reader: LineReader, writer: LineWriter, conversation: ServerConversation) -> None:
    channel = _LineChannel(writer)
    while (line := await reader.read()) != b"":
        try:
            if isinstance(line, TooLongLine):
                raise ValueError("the line is too long")
            value = decode(line)
        except (Unreadable, ValueError) as error:
            channel.send(error_message(None, PARSE_ERROR, f"Parse error: {str(error)[:200]}"))
            continue
        for message in value if isinstance(value, list) else [value]:
            conversation.receive(message, channel)
        await writer.drain()
        if writer.is_broken:
            return
