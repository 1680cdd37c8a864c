"""All connections of the handshake era, by Mcp-Session-Id. Connections that name the same session share it."""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial

from emceepee.clock import Handle, milliseconds
from emceepee.ids import Ulids
from emceepee.lifecycle import CLOSE_TASKS_SECONDS, TaskOwner, close_bounded
from emceepee.server.dispatch import Tools
from emceepee.server.http.connection_records import (
    MessageRecord,
    connection_of,
    number_of,
    read_connection,
    read_message,
    write_connection,
    write_message,
)
from emceepee.server.http.exchange import DirectResponse, HttpRequest
from emceepee.server.http.handshake_connection import HandshakeConnection, handshake_refusal
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.requests import observe_refusal
from emceepee.server.session_keys import NameTooLong, named_key, pinned_name
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.directory.open_sessions import TooManySessions
from emceepee.sessions.directory.session_storage import SessionsUnavailable
from emceepee.sessions.records import RecordKind, UnreadableRecord
from emceepee.sessions.session import Session
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import RecordKey
from emceepee.telemetry.logs import EventLog
from emceepee.tools.request_context import RequestContext, ServerPolicy
from emceepee.web.asgi import Header
from emceepee.wire.json_rpc import ProtocolError, Request, classify, client_label, error_message
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import INVALID_REQUEST

log = EventLog("http")
SWEEP_SECONDS = 60.0
CONNECT_HEADER = b"emceepee-connect"  # `on-use`: the new session connects a server only when a call needs it


class HandshakeConnections:
    """The open connections. An unnamed connection owns its session, which ends with it. A named session stays."""

    def __init__(
        self, methods: ProtocolMethods, tools: Tools, directory: SessionDirectory, policy: ServerPolicy
    ) -> None:
        self._methods, self._tools, self._directory = methods, tools, directory
        self._connect = partial(HandshakeConnection, methods, tools, directory, policy)
        self._ids = Ulids(lambda: milliseconds(directory.clock.now()))
        self._by_id: dict[str, HandshakeConnection] = {}
        self._by_session: dict[Session, list[HandshakeConnection]] = {}
        self._restoring: dict[str, HandshakeConnection] = {}  # still loading, so not found by requests
        self._leaving: set[str] = set()  # ended here, but perhaps not yet in the store
        self._tasks = TaskOwner("connections")
        self._next_sweep: Handle | None = None

    def __len__(self) -> int:
        return len(self._by_id)

    def __iter__(self) -> Iterator[HandshakeConnection]:
        return iter(list(self._by_id.values()))

    # Requests.

    async def find_for(self, http: HttpRequest, value: object) -> HandshakeConnection | DirectResponse:
        """Find or open the connection of a request, or refuse the request. `value` is its decoded body.

        Raises:
            SessionElsewhere
        """
        given = http.headers.get(b"mcp-session-id")
        if given is None and http.scope["method"] == "POST":
            return await self._open_for(http, value)
        if not given:
            return self._refuse(http, value, 400, "Bad request: the Mcp-Session-Id header is missing")
        connection_id, principal = given.decode("latin-1"), http.identity.principal
        connection = self._find_here(connection_id)
        if connection is None and connection_id not in self._leaving:
            try:
                connection = await self._load(connection_id, principal, may_guess=http.may_guess)
            except (SessionsUnavailable, TooManySessions) as error:
                return self._refuse(http, value, 503, str(error), (b"retry-after", b"5"))
        if connection is None or connection.key.principal != principal:
            return self._refuse(http, value, 404, "Session not found: it has ended. Begin again with initialize.")
        connection.session.touch()
        return connection

    async def _open_for(self, http: HttpRequest, value: object) -> HandshakeConnection | DirectResponse:
        """Open a connection for an `initialize` request, and refuse any other request."""
        message = classify(value)
        if not (isinstance(message, Request) and message.method == "initialize"):
            words = "Bad request: begin with initialize, then send the Mcp-Session-Id that it returns."
            return self._refuse(http, value, 400, words)
        if (refusal := await handshake_refusal(message, self._methods)) is not None:
            self._observe_refusal(http, message, refusal)
            return DirectResponse(200, refusal)
        try:
            is_tab = http.headers.get(CONNECT_HEADER, b"").strip().lower() == b"on-use"
            return await self.open(
                http.identity.principal,
                pinned_name(http.headers, http.query),
                label=client_label(message.params),
                connects_on_use=is_tab or http.identity.is_remote,
                is_tab=is_tab,
                may_guess=http.may_guess,
            )
        except SessionsUnavailable as error:
            return self._refuse(http, value, 503, str(error), (b"retry-after", b"5"))
        except TooManySessions as error:
            return self._refuse(http, value, 503, str(error), (b"retry-after", b"60"))
        except NameTooLong as error:
            return self._refuse(http, value, 400, str(error))

    def _refuse(self, http: HttpRequest, value: object, status: int, words: str, *headers: Header) -> DirectResponse:
        """Refuse a request that no connection can serve."""
        reply = error_message(None, INVALID_REQUEST, words)
        if isinstance(request := classify(value), Request):
            self._observe_refusal(http, request, reply)
        return DirectResponse(status, reply, headers)

    def _observe_refusal(self, http: HttpRequest, request: Request, reply: JsonObject) -> None:
        context = RequestContext(
            request, principal=http.identity.principal, directory=self._directory, headers=http.headers
        )
        observe_refusal(self._tools, context, reply)

    async def _load(self, connection_id: str, principal: str, *, may_guess: bool) -> HandshakeConnection | None:
        """Load the connection with its session from the store.

        Raises:
            SessionsUnavailable, TooManySessions, SessionElsewhere
        """
        for kind in (KeyKind.ID, KeyKind.CONNECTION):
            key = SessionKey(principal, kind, connection_id)
            if await self._directory.use(key, may_guess=may_guess) is not None:
                break
        return self._find_here(connection_id)

    def _find_here(self, connection_id: str) -> HandshakeConnection | None:
        """Return the connection, or None if another replica holds its session and only last answers are pending."""
        connection = self._by_id.get(connection_id)
        return None if connection is None or connection.session.is_lost else connection

    async def restore(self, session: Session, stored: Mapping[RecordKey, bytes]) -> None:
        """Restore the connections of a loaded session. An unreadable connection is dropped, as if it had ended."""
        key = next(key for key in session.keys if key.kind is not KeyKind.CONNECTION)
        messages: dict[str, list[MessageRecord]] = {}
        for (kind, record_id), data in stored.items():
            if kind == RecordKind.MESSAGE:
                with suppress(UnreadableRecord):
                    messages.setdefault(connection_of(record_id), []).append(read_message(data))
        for (kind, connection_id), data in stored.items():
            if kind == RecordKind.CONNECTION:
                connection = self._restoring[connection_id] = self._connect(connection_id, key, session)
                try:
                    await connection.restore(read_connection(data), messages.get(connection_id, []))
                except (UnreadableRecord, ProtocolError) as error:
                    log.warning("record_unreadable", kind=kind, error=str(error))
                    continue
                finally:
                    del self._restoring[connection_id]
                self._add(connection)

    async def open(
        self,
        principal: str,
        name: str,
        *,
        label: str | None,
        connects_on_use: bool,
        is_tab: bool = False,
        may_guess: bool = True,
    ) -> HandshakeConnection:
        """Open a connection in the named session, which may exist already. Without a name, open a new session.

        Raises:
            NameTooLong, TooManySessions, SessionsUnavailable, SessionElsewhere
        """
        if name:
            key = named_key(principal, name)
            is_new = self._directory.find(key) is None
            session = await self._directory.find_or_open(key, may_guess=may_guess)
            connection_id = self._directory.storage.mint(self._ids.unguessable())
        else:
            key, session = await self._directory.open(principal)
            connection_id, is_new = key.value, True
        if is_new:
            session.update_profile(connects_on_use=connects_on_use, is_tab=is_tab)
        if session.profile.label is None:
            session.update_profile(label=label)
        connection = self._connect(connection_id, key, session)
        self._add(connection)
        return connection

    async def end(self, connection: HandshakeConnection) -> None:
        """End a connection at its caller's request, together with its session if the connection owns it."""
        if connection.owns_session:
            await self._directory.close(connection.key)
        else:
            self._remove(connection)
            await self._leave(connection)

    async def close_all_of(self, session: Session) -> None:
        """Close all connections of a session, but still answer the request that asked for this."""
        ended = self._by_session.pop(session, [])
        for connection in ended:
            self._drop(connection)
        if ended:
            asking = asyncio.current_task()
            closing = asyncio.gather(*(connection.close(asking) for connection in ended))
            await close_bounded(closing, within=2 * CLOSE_TASKS_SECONDS, what="the connections of a session")

    async def close(self) -> None:
        """Stop sweeping. Open connections end with their sessions."""
        if self._next_sweep is not None:
            self._next_sweep.cancel()
        await self._tasks.close(within=2 * CLOSE_TASKS_SECONDS)

    def _add(self, connection: HandshakeConnection) -> None:
        session = connection.session
        others = self._by_session.setdefault(session, [])
        if others and len(others) >= connection.session.limits.connections_per_session:
            self._forget(min(others, key=lambda other: (other.is_busy, other.used_at)))
        others.append(connection)
        self._by_id[connection.connection_id] = connection
        if self._next_sweep is None and not connection.owns_session:
            self._next_sweep = self._directory.clock.call_later(SWEEP_SECONDS, self._sweep)

    def _kept(self, connection_id: str) -> HandshakeConnection | None:
        return self._by_id.get(connection_id) or self._restoring.get(connection_id)

    def write_record(self, kind: RecordKind, record_id: str) -> bytes | None:
        """Return the current record of a connection or one of its messages, or None if it no longer exists."""
        if kind is RecordKind.MESSAGE:
            return self._write_message(record_id)
        return self._write_connection(record_id)

    def _write_connection(self, connection_id: str) -> bytes | None:
        connection = self._kept(connection_id)
        record = None if connection is None else connection.record()
        return None if record is None else write_connection(record)

    def _write_message(self, record_id: str) -> bytes | None:
        connection = self._kept(connection_of(record_id))
        record = None if connection is None else connection.message_record(number_of(record_id))
        return None if record is None else write_message(record)

    def _drop(self, connection: HandshakeConnection) -> None:
        if self._by_id.get(connection.connection_id) is connection:  # its session may be loaded again already
            del self._by_id[connection.connection_id]

    def _remove(self, connection: HandshakeConnection) -> None:
        self._drop(connection)
        self._leaving.add(connection.connection_id)
        connection.forget_records()
        others = self._by_session.get(connection.session, [])
        if connection in others:
            others.remove(connection)
        if not others:
            self._by_session.pop(connection.session, None)

    def _sweep(self) -> None:
        """Remove idle connections, since many clients never send DELETE. The limit is the idle time of a session."""
        now = self._directory.clock.monotonic()
        joined = [connection for connection in self if not connection.owns_session]
        self._next_sweep = self._directory.clock.call_later(SWEEP_SECONDS, self._sweep) if joined else None
        for connection in joined:
            if not connection.is_busy and now - connection.used_at >= connection.session.limits.session_idle_seconds:
                self._forget(connection)

    def _forget(self, connection: HandshakeConnection) -> None:
        log.info("connection_forgotten")
        self._remove(connection)
        self._tasks.spawn(self._leave(connection), name="forget")

    async def _leave(self, connection: HandshakeConnection) -> None:
        """Leave the connection. Return once the store has recorded its end."""
        try:
            await connection.leave()
            await connection.session.unsaved.save()
        finally:
            self._leaving.discard(connection.connection_id)
