"""The callers of a daemon: each has a connection and a session, as if it had a process of its own."""

import asyncio
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from emceepee.clock import Clock, give_up_after
from emceepee.daemon.daemon_folder import UnsafePlace, check_peer
from emceepee.daemon.greeting import LONGEST_GREETING, BadGreeting, DaemonHello, Welcome, read_hello, write_greeting
from emceepee.errors import EmceepeeError
from emceepee.guard.caller_identity import LOCAL
from emceepee.lifecycle import CLOSE_SESSION_SECONDS, TaskOwner
from emceepee.server.dispatch import Tools
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.stdio.socket_lines import SocketLines
from emceepee.server.stdio.stdio_conversation import StdioConversation
from emceepee.server.stdio.stdio_endpoint import END_GRACE, FLUSH_SECONDS
from emceepee.server.stop_signals import FINISH_SECONDS, LET_GO_SECONDS
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.session import Session
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import StoreError
from emceepee.telemetry.logs import EventLog
from emceepee.wire.codec import encode
from emceepee.wire.json_types import JsonObject

log = EventLog("server")
HELLO_SECONDS = 10.0  # for the complete greeting
REFUSAL_SECONDS = 1.0  # to write a refusal to the buffers of a socket
HOW_TO_ATTACH = "to attach, run `emceepee --attach require`"
ACCEPT_PAUSE_SECONDS = 0.5  # after a failed accept, usually because the process is temporarily out of descriptors


class AdmissionCheck(Protocol):
    """Decides which clients may attach to this daemon."""

    async def refusal(self, hello: DaemonHello) -> str | None: ...

    @property
    def notice(self) -> str | None:
        """A notice for admitted clients."""
        ...


class _Refused(Exception):
    """A rejected caller; the text gives the reason and the remedy."""


class AttachedCallers:
    """Accepts callers on a listening socket."""

    def __init__(
        self,
        methods: ProtocolMethods,
        tools: Tools,
        directory: SessionDirectory,
        admission_check: AdmissionCheck,
        *,
        longest_line: int,
        link_file: str | None,
    ) -> None:
        self._methods, self._tools, self._directory, self._admission_check = methods, tools, directory, admission_check
        self._clock: Clock = directory.clock
        self._longest, self._link_file = longest_line, link_file
        self._tasks = TaskOwner("attached")
        self._conversations: set[StdioConversation] = set()
        self._holders: dict[SessionKey, int] = {}  # the number of callers per session
        self._connections = 0
        self._is_stopping = False

    def __len__(self) -> int:
        return self._connections

    async def accept(self, listener: socket.socket, on_change: Callable[[], None]) -> None:
        """Accept callers until cancelled. `on_change` is called whenever a caller connects or leaves."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                connection, _ = await loop.sock_accept(listener)
            except OSError as error:
                log.warning("caller_not_accepted", error=str(error))
                await self._clock.sleep(ACCEPT_PAUSE_SECONDS)
                continue
            self._connections += 1
            on_change()
            self._tasks.spawn(self._serve(connection, on_change), name="caller")

    async def drain(self, hurried: asyncio.Event) -> None:
        """Accept nothing new, and give running requests time to finish. Keep the sessions: their callers reconnect."""
        self._is_stopping = True
        draining = [
            item.drain(finish=FINISH_SECONDS, let_go=LET_GO_SECONDS, hurried=hurried) for item in self._conversations
        ]
        await asyncio.gather(*draining)

    async def close(self) -> None:
        self._is_stopping = True
        await self._tasks.close(within=CLOSE_SESSION_SECONDS)

    async def _serve(self, connection: socket.socket, on_change: Callable[[], None]) -> None:
        try:
            check_peer(connection)
            await self._answer(connection)
        except _Refused as refusal:
            log.info("caller_refused", reason=str(refusal))
            await self._refuse(connection, str(refusal))
        except (UnsafePlace, OSError) as error:
            log.warning("caller_refused", error=str(error))
        finally:
            connection.close()
            self._connections -= 1
            on_change()

    async def _answer(self, connection: socket.socket) -> None:
        """Raises: _Refused, OSError."""
        line, rest = await self._read_greeting(connection)
        if not line:
            return
        try:
            hello = read_hello(line)
        except BadGreeting as error:
            raise _Refused(f"the daemon cannot read the greeting: {error}; {HOW_TO_ATTACH}") from None
        if (refusal := await self._admission_check.refusal(hello)) is not None:
            raise _Refused(refusal)
        lines = SocketLines(self._longest, rest)
        try:
            await self._attend(hello, connection, lines)
        finally:
            lines.close()

    async def _read_greeting(self, connection: socket.socket) -> tuple[bytes, bytes]:
        """Return the first line and the bytes after it; no line if the caller has left. Raises: _Refused, OSError."""
        loop, read = asyncio.get_running_loop(), bytearray()
        try:
            async with give_up_after(self._clock, HELLO_SECONDS):
                while (end := read.find(b"\n")) < 0:
                    if len(read) >= LONGEST_GREETING:
                        raise _Refused(
                            f"the greeting is longer than {LONGEST_GREETING:,} bytes; {HOW_TO_ATTACH}, with a shorter "
                            "--session if you pass one"
                        )
                    part = await loop.sock_recv(connection, LONGEST_GREETING - len(read))
                    if not part:
                        return b"", b""
                    read += part
        except TimeoutError:
            raise _Refused(f"the greeting did not arrive within {HELLO_SECONDS:g} s; {HOW_TO_ATTACH}") from None
        return bytes(read[: end + 1]), bytes(read[end + 1 :])

    async def _refuse(self, connection: socket.socket, reason: str) -> None:
        with suppress(OSError):  # includes a timeout
            async with give_up_after(self._clock, REFUSAL_SECONDS):
                welcome = Welcome(pid=os.getpid(), refusal=reason)
                await asyncio.get_running_loop().sock_sendall(connection, write_greeting(welcome))

    async def _attend(self, hello: DaemonHello, connection: socket.socket, lines: SocketLines) -> None:
        """Raises: _Refused, OSError."""
        key = SessionKey(LOCAL, KeyKind.NAME, hello.session)
        try:
            session = await self._directory.find_or_open(key)
        except (EmceepeeError, StoreError) as error:
            raise _Refused(str(error)) from None
        self._holders[key] = self._holders.get(key, 0) + 1
        session.open_streams += 1  # while it has a caller, it neither sleeps nor expires
        try:
            session.update_profile(transport="stdio")
            notice, link_file = self._admission_check.notice, self._link_file
            welcome = Welcome(pid=os.getpid(), longest_line=self._longest, link_file=link_file, notice=notice)
            # The transport closes the socket after its buffer is written.
            owned = socket.socket(fileno=connection.detach())
            owned.setblocking(False)
            await asyncio.get_running_loop().connect_accepted_socket(lambda: lines, owned)
            lines.writer.write(write_greeting(welcome).removesuffix(b"\n"))
            await self._converse(session, lines)
        finally:
            session.open_streams -= 1
            session.touch()
            await self._leave(key, is_kept=hello.is_kept)

    async def _converse(self, session: Session, lines: SocketLines) -> None:
        def send(message: JsonObject | list[JsonObject]) -> None:
            lines.writer.write(encode(message))

        conversation = StdioConversation(self._methods, session, send, self._tools)
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
        """Close the session after its last caller leaves, unless other callers can find it by its name."""
        self._holders[key] -= 1
        if self._holders[key]:
            return
        del self._holders[key]
        if not is_kept and not self._is_stopping:
            with suppress(EmceepeeError, StoreError):
                await self._directory.close(key)
