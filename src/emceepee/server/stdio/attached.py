"""The callers of a daemon: each has a connection and a session, as if it had a process of its own."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from emceepee.attach.greeting import BadGreeting, Hello, Welcome, read_hello, write_greeting
from emceepee.attach.place import UnsafePlace, check_peer
from emceepee.clock import Clock, give_up_after
from emceepee.codec import encode
from emceepee.errors import EmceepeeError
from emceepee.framing import TooLongLine
from emceepee.guard.identity import LOCAL
from emceepee.json_types import JsonObject
from emceepee.lifecycle import CLOSE_SESSION_SECONDS, TaskOwner
from emceepee.server.dispatch import Tools
from emceepee.server.kernel import Kernel
from emceepee.server.stdio.conversation import Conversation
from emceepee.server.stdio.endpoint import END_GRACE, FLUSH_SECONDS
from emceepee.server.stdio.socket_lines import SocketLines
from emceepee.server.stop_signals import FINISH_SECONDS, LET_GO_SECONDS
from emceepee.sessions.directory import SessionDirectory
from emceepee.sessions.session import Session
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import StoreError
from emceepee.telemetry.logs import EventLog

log = EventLog("server")
HELLO_SECONDS = 10.0
ACCEPT_PAUSE_SECONDS = 0.5  # after a caller who could not be let in: mostly there are no descriptors, for a moment


class Doorkeeper(Protocol):
    """Who says whom this daemon is for."""

    async def refusal(self, hello: Hello) -> str | None: ...

    @property
    def notice(self) -> str | None:
        """What whoever is let in should know."""
        ...


class AttachedCallers:
    """Accepts callers on a listening socket. `on_change` is told whenever one comes or leaves."""

    def __init__(
        self,
        kernel: Kernel,
        tools: Tools,
        directory: SessionDirectory,
        doorkeeper: Doorkeeper,
        *,
        longest_line: int,
        link_file: str | None,
    ) -> None:
        self._kernel, self._tools, self._directory, self._doorkeeper = kernel, tools, directory, doorkeeper
        self._clock: Clock = directory.clock
        self._longest, self._link_file = longest_line, link_file
        self.on_change: Callable[[], None] = lambda: None
        self._tasks = TaskOwner("attached")
        self._conversations: set[Conversation] = set()
        self._holders: dict[SessionKey, int] = {}  # how many callers each session has
        self._connections = 0
        self._is_stopping = False

    def __len__(self) -> int:
        return self._connections

    async def accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("caller_not_accepted", error=str(error))
                await self._clock.sleep(ACCEPT_PAUSE_SECONDS)
                continue
            self._connections += 1
            self.on_change()
            self._tasks.spawn(self._serve(connection), name="caller")

    async def drain(self, hurried: asyncio.Event) -> None:
        """Nothing new begins; what runs has a moment. Sessions are left as they are: their callers come again."""
        self._is_stopping = True
        draining = [
            item.drain(finish=FINISH_SECONDS, let_go=LET_GO_SECONDS, hurried=hurried) for item in self._conversations
        ]
        await asyncio.gather(*draining)

    async def close(self) -> None:
        self._is_stopping = True
        await self._tasks.close(within=CLOSE_SESSION_SECONDS)

    async def _serve(self, connection: socket.socket) -> None:
        lines = SocketLines(self._longest)
        try:
            check_peer(connection)
            await asyncio.get_running_loop().connect_accepted_socket(lambda: lines, connection)
            hello = await self._greeting(lines)
            if hello is not None:
                await self._attend(hello, lines)
        except (UnsafePlace, OSError) as error:
            log.warning("caller_refused", error=str(error))
            connection.close()
        finally:
            lines.close()
            self._connections -= 1
            self.on_change()

    async def _greeting(self, lines: SocketLines) -> Hello | None:
        """Of a caller that is let in."""
        line: bytes | TooLongLine = b""
        with suppress(TimeoutError):
            async with give_up_after(self._clock, HELLO_SECONDS):
                line = await lines.read()
        if not isinstance(line, bytes) or not line:
            return None
        try:
            hello = read_hello(line)
        except BadGreeting as error:
            await self._refuse(lines, str(error))
            return None
        if (refusal := await self._doorkeeper.refusal(hello)) is not None:
            log.info("caller_refused", reason=refusal)
            await self._refuse(lines, refusal)
            return None
        return hello

    async def _refuse(self, lines: SocketLines, reason: str) -> None:
        self._write(lines, Welcome(pid=os.getpid(), refusal=reason))
        await lines.writer.flush(within=FLUSH_SECONDS)

    def _write(self, lines: SocketLines, welcome: Welcome) -> None:
        lines.writer.write(write_greeting(welcome).removesuffix(b"\n"))

    async def _attend(self, hello: Hello, lines: SocketLines) -> None:
        key = SessionKey(LOCAL, KeyKind.NAME, hello.session)
        try:
            session = await self._directory.find_or_open(key)
        except (EmceepeeError, StoreError) as error:
            await self._refuse(lines, str(error))
            return
        self._holders[key] = self._holders.get(key, 0) + 1
        session.open_streams += 1  # as long as it has a caller, it is neither put to sleep nor forgotten
        try:
            session.update_profile(transport="stdio")
            notice, link_file = self._doorkeeper.notice, self._link_file
            welcome = Welcome(pid=os.getpid(), longest_line=self._longest, link_file=link_file, notice=notice)
            self._write(lines, welcome)
            await self._converse(session, lines)
        finally:
            session.open_streams -= 1
            session.touch()
            await self._leave(key, is_kept=hello.is_kept)

    async def _converse(self, session: Session, lines: SocketLines) -> None:
        def send(message: JsonObject | list[JsonObject]) -> None:
            lines.writer.write(encode(message))

        conversation = Conversation(self._kernel, session, send, self._tools)
        self._conversations.add(conversation)
        try:
            while (line := await lines.read()) != b"":
                await conversation.receive(line)
                await lines.writer.drain()
                if lines.writer.is_broken:
                    return
            await conversation.finish(within=END_GRACE)
        finally:
            self._conversations.discard(conversation)
            await conversation.close()
            await lines.writer.flush(within=FLUSH_SECONDS)

    async def _leave(self, key: SessionKey, *, is_kept: bool) -> None:
        """A session that only its caller could name ends with it."""
        self._holders[key] -= 1
        if self._holders[key]:
            return
        del self._holders[key]
        if not is_kept and not self._is_stopping:
            with suppress(EmceepeeError, StoreError):
                await self._directory.close(key)
