"""A link to a child process that speaks JSON-RPC on its pipes, in either era."""

import asyncio
from collections.abc import Mapping

from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from emceepee.backends.child import Child, start_child
from emceepee.backends.duplex import Duplex
from emceepee.backends.family import Family
from emceepee.backends.link import Failure, LinkError, Listener, ServerFacts
from emceepee.backends.negotiation import LOG_LEVEL_KEY, Terms, envelope, negotiate
from emceepee.backends.spec import StdioTarget
from emceepee.clock import Clock
from emceepee.codec import decode, encode
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner

CLOSING_SECONDS = 5.0  # for answers still being written when the link closes


class StdioLink:
    """Open with `start`; whoever opened it closes it."""

    mirrors_arguments = False

    def __init__(self, listener: Listener, family: Family) -> None:
        self._listener, self._family = listener, family
        self._tasks = TaskOwner("stdio-link")
        self._duplex = Duplex(self._send, listener, self._tasks)
        self._child: Child | None = None
        self._terms = Terms()
        self.facts = ServerFacts()
        self.closed: asyncio.Future[str] = asyncio.get_running_loop().create_future()

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
        self._terms = terms
        self.facts = await negotiate(self._discover, self._initialize, terms)
        if self.facts.is_modern:
            self._duplex.envelope = envelope(self.facts.protocol_version, terms.capabilities)
        else:
            await self.notify("notifications/initialized")

    async def request(
        self,
        method: str,
        params: JsonObject | None = None,
        *,
        origin: object | None = None,
        headers: Mapping[str, str] | None = None,  # there are none on a pipe
    ) -> JsonObject:
        return await self._duplex.request(method, params, origin=origin)

    async def notify(self, method: str, params: JsonObject | None = None) -> None:
        await self._duplex.notify(method, params)

    def set_log_level(self, level: str) -> None:
        if self._duplex.envelope is not None:
            self._duplex.envelope[LOG_LEVEL_KEY] = level

    @property
    def is_busy(self) -> bool:
        return self._duplex.in_flight > 0

    @property
    def identity(self) -> None:
        return None  # a new line is a new conversation

    @property
    def resumption(self) -> None:
        return None

    async def close(self) -> None:
        self._duplex.end(LinkError(Failure.CLOSED, "the connection was closed"))
        if self._child is not None:
            await self._child.stop()
        await self._tasks.close(within=CLOSING_SECONDS)

    def process(self) -> JsonObject | None:
        if self._child is None:
            return None
        return self._child.facts()

    async def _discover(self, method: str, params: JsonObject) -> JsonObject:
        return await self._duplex.request(
            method, params, origin=None, meta=envelope(MODERN_PROTOCOL_VERSIONS[-1], self._terms.capabilities)
        )

    async def _initialize(self, method: str, params: JsonObject) -> JsonObject:
        return await self._duplex.request(method, params, origin=None)

    async def _send(self, message: JsonObject) -> None:
        if self._child is None:
            raise LinkError(Failure.CLOSED, "the process was not started")
        await self._child.write(encode(message) + b"\n")

    def _line(self, line: bytes | None) -> None:
        if line is None:
            self._listener.said("(a line too long to be read)", "stdout")
            return
        if not line.strip():
            return
        try:
            understood = self._duplex.receive(decode(line))
        except ValueError:
            understood = False
        if not understood:
            self._listener.said(line.decode("utf-8", "replace"), "stdout")

    def _child_ended(self, ended: "asyncio.Future[str]") -> None:
        if not self.closed.done():
            self.closed.set_result(ended.result())
        self._duplex.end(LinkError(Failure.CLOSED, ended.result()))
