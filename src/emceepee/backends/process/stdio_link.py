"""A link to a child process that speaks JSON-RPC on its standard input and output, in either era."""

import asyncio
from collections.abc import Awaitable

from emceepee.backends.link import LinkError, LinkFailure, Listener
from emceepee.backends.links.duplex_link import DuplexLink
from emceepee.backends.negotiation import NegotiationTerms
from emceepee.backends.process.child import Child, start_child
from emceepee.backends.process.child_processes import ChildProcesses
from emceepee.backends.spec import StdioTarget
from emceepee.clock import Clock, give_up_after
from emceepee.state.connection.connection_state import CLOSED, LinkEnd, LinkEndKind
from emceepee.wire.codec import Unreadable, encode
from emceepee.wire.json_types import JsonObject
from emceepee.wire.line_splitter import TooLongLine

TOO_LARGE = "the answer is larger than the longest line that is read (the limit line_bytes)"
TOO_LONG = Unreadable("longer than the longest line that is read")
UNREAD_SECONDS = 30.0  # timeout for a process that keeps sending requests without reading our answers
ANSWERS_UNREAD = "it sent more requests than are served at once, and did not read the answers"


class StdioLink(DuplexLink):
    """Open the link with `start`. The opener must close it."""

    def __init__(
        self, listener: Listener, child_processes: ChildProcesses, clock: Clock, *, most_requests: int
    ) -> None:
        super().__init__("stdio-link", listener, most_requests=most_requests)
        self._child_processes, self._clock = child_processes, clock
        self._is_paused = False  # while its output is not read
        self._child: Child | None = None

    async def start(self, target: StdioTarget, terms: NegotiationTerms, *, longest: int) -> None:
        self._child = await start_child(
            target,
            self._clock,
            self._child_processes,
            on_line=self._handle_line,
            on_stderr=lambda line: self._listener.handle_output(line, "stderr"),
            longest=longest,
        )
        self._child.ended.add_done_callback(self._child_ended)
        await self._negotiate(terms)

    async def close(self) -> None:
        self.end(CLOSED)
        if self._child is not None:
            await self._child.stop()
        await self._tasks.close()

    @property
    def process_ended(self) -> "asyncio.Future[str]":
        """Resolves when the process is gone, some time after `closed`."""
        assert self._child is not None  # the link was started
        return self._child.ended

    def process(self) -> JsonObject | None:
        return None if self._child is None else self._child.facts()

    def _target(self) -> str:
        return f"pid={self._child.pid if self._child else None} requests={len(self._waiting)}"

    def _send(self, message: JsonObject) -> Awaitable[None]:
        if self._child is None:
            raise LinkError(LinkFailure.CLOSED, "the process was not started")
        return self._child.write(encode(message) + b"\n")

    def _handle_line(self, line: bytes | TooLongLine) -> None:
        if isinstance(line, TooLongLine):
            self._listener.handle_output("(a line too long to be read)", "stdout")
            if line.may_be_an_answer:
                self._fail_request(line.message_id, LinkError(LinkFailure.PROTOCOL, TOO_LARGE))
            elif line.message_id is not None:
                self._inbound.receive({"id": line.message_id, "method": TOO_LONG}, None)
        elif line.strip():
            self._receive(line)
            if self._inbound.is_crowded and self._child is not None and not self._is_paused:
                self._is_paused = True
                self._child.pause_reading()
                self._tasks.spawn(self._resume_when_read(self._child), name="back-pressure")

    async def _resume_when_read(self, child: Child) -> None:
        """Pause reading until our answers are written. If the process never reads them, end the link."""
        try:
            async with give_up_after(self._clock, UNREAD_SECONDS):
                await self._inbound.wait_for_room()
        except TimeoutError:
            self.end(LinkEnd(LinkEndKind.LOST, ANSWERS_UNREAD))
        else:
            self._is_paused = False
            child.resume_reading()

    def _child_ended(self, ended: "asyncio.Future[str]") -> None:
        self.end(LinkEnd(LinkEndKind.LOST, ended.result()))
