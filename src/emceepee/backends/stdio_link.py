"""A link to a child process that speaks JSON-RPC on its pipes, in either era."""

import asyncio

from emceepee.backends.child import Child, start_child
from emceepee.backends.duplex_link import DuplexLink
from emceepee.backends.family import Family
from emceepee.backends.link import Failure, LinkError, Listener
from emceepee.backends.negotiation import Terms
from emceepee.backends.spec import StdioTarget
from emceepee.clock import Clock
from emceepee.codec import encode
from emceepee.framing import TooLongLine
from emceepee.json_types import JsonObject

CLOSING_SECONDS = 5.0  # for answers still being written when the link closes
TOO_LARGE = "the answer is larger than the longest line that is read (the limit line_bytes)"


class StdioLink(DuplexLink):
    """Open with `start`; whoever opened it closes it."""

    def __init__(self, listener: Listener, family: Family) -> None:
        super().__init__("stdio-link", listener)
        self._family = family
        self._child: Child | None = None

    async def start(self, target: StdioTarget, clock: Clock, terms: Terms, *, longest: int) -> None:
        self._child = await start_child(
            target,
            clock,
            self._family,
            on_line=self._line,
            on_stderr=lambda line: self._listener.said(line, "stderr"),
            longest=longest,
        )
        self._child.ended.add_done_callback(self._child_ended)
        await self._greet(terms)

    async def close(self) -> None:
        self._duplex.end(LinkError(Failure.CLOSED, "the connection was closed"))
        if self._child is not None:
            await self._child.stop()
        await self._tasks.close(within=CLOSING_SECONDS)

    def process(self) -> JsonObject | None:
        return None if self._child is None else self._child.facts()

    async def _send(self, message: JsonObject) -> None:
        if self._child is None:
            raise LinkError(Failure.CLOSED, "the process was not started")
        await self._child.write(encode(message) + b"\n")

    def _line(self, line: bytes | TooLongLine) -> None:
        if isinstance(line, TooLongLine):
            self._listener.said("(a line too long to be read)", "stdout")
            if line.may_be_an_answer:
                self._duplex.lost(line.message_id, LinkError(Failure.PROTOCOL, TOO_LARGE))
        elif line.strip():
            self._hear(line)

    def _child_ended(self, ended: "asyncio.Future[str]") -> None:
        if not self.closed.done():
            self.closed.set_result(ended.result())
        self._duplex.end(LinkError(Failure.CLOSED, ended.result()))
