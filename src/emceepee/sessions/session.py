"""One caller's session: its connections, its calls in the air, and what its backends said."""

import asyncio
from dataclasses import dataclass

from emceepee.backends.connection import Connection
from emceepee.backends.dialer import CLOSE_SECONDS, Dialer
from emceepee.backends.spec import BackendSpec
from emceepee.clock import Clock, within
from emceepee.errors import EmceepeeError, ExecutionFailed, InvalidArguments, TimedOut, UnknownBackend
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.sessions.buffers import ServerBuffers
from emceepee.sessions.calls import Call, OnProgress
from emceepee.sessions.listener import BackendListener
from emceepee.sessions.registry import ServerRegistry
from emceepee.state.connection import ConnectionState, ConnectionStatus
from emceepee.state.limits import Limits
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionParts:
    """What every session of an installation is made with."""

    registry: ServerRegistry
    dialer: Dialer
    clock: Clock
    limits: Limits


class Session:
    """Open with `open`; everything it started ends with `close`."""

    def __init__(self, session_id: str, principal: str, parts: SessionParts) -> None:
        self.session_id, self.principal = session_id, principal
        self.clock, self.limits = parts.clock, parts.limits
        self._registry, self._dialer = parts.registry, parts.dialer
        self._connections: dict[str, Connection] = {}
        self._buffers: dict[str, ServerBuffers] = {}
        self._calls = TaskOwner("calls")
        self._is_awake = False

    def __repr__(self) -> str:
        return f"<Session {self.session_id} servers={len(self._connections)} calls={len(self._calls)}>"

    async def open(self) -> None:
        """Learn which servers there are. Nothing is connected yet."""
        for spec in (await self._registry.join(self.principal, self)).values():
            self._connections[spec.name] = self._connection(spec)

    def wake(self) -> None:
        """Connect every configured server in the background, each by itself."""
        if not self._is_awake:
            self._is_awake = True
            for connection in self._connections.values():
                connection.start()

    async def close(self) -> None:
        self._registry.leave(self.principal, self)
        log.info("registry_shutdown_start", serverCount=len(self._connections))
        await self._calls.close(within=CLOSE_SECONDS)
        await asyncio.gather(*(connection.close() for connection in self._connections.values()))
        log.info("registry_shutdown_complete")

    # Servers.

    @property
    def connections(self) -> list[Connection]:
        return list(self._connections.values())

    def connection(self, name: str) -> Connection:
        """Raises: UnknownBackend."""
        connection = self._connections.get(name)
        if connection is None:
            raise UnknownBackend(name, known=self._connections)
        return connection

    async def add_server(self, spec: BackendSpec) -> Connection:
        """Connect it, and only then add it for all sessions of the principal.

        Raises:
            InvalidArguments: the name belongs to another configuration.
            ExecutionFailed: it could not be connected; nothing of it is left.
        """
        known = self._connections.get(spec.name)
        if known is not None and known.spec == spec:
            if known.state.status in (ConnectionStatus.ERROR, ConnectionStatus.DISCONNECTED):
                await known.reconnect()
            await known.ready()
            return known
        with self._registry.reserving(self.principal, spec.name):
            connection = self._connection(spec)
            try:
                await connection.ready()
            except EmceepeeError as error:
                await self._discard(connection)
                raise ExecutionFailed(
                    f'Server "{spec.name}" was not added, because it could not be connected: '
                    f"{connection.state.reason}. Correct the settings and call add_server again.",
                    details={"server": spec.name, "url": spec.target.label},
                ) from error
            except BaseException:
                await self._discard(connection)
                raise
            await self._registry.add(self.principal, spec, by=self)
        self._connections[spec.name] = connection
        return connection

    async def remove_server(self, name: str) -> None:
        """Returns when its process tree is gone. Raises: UnknownBackend, NotAllowed."""
        self.connection(name)
        await self._registry.remove(self.principal, name)

    def server_added(self, spec: BackendSpec) -> None:
        """Another session of the principal added it; it is connected when it is used."""
        self._connections[spec.name] = self._connection(spec)

    async def server_removed(self, name: str) -> None:
        connection = self._connections.pop(name, None)
        if connection is not None:
            await self._discard(connection)

    def _connection(self, spec: BackendSpec) -> Connection:
        def observe(state: ConnectionState) -> None:
            self._connection_moved(spec, state)

        listener = BackendListener(self, spec.name)
        return Connection(spec, listener, observe, dialer=self._dialer, clock=self.clock, limits=self.limits)

    async def _discard(self, connection: Connection) -> None:
        await connection.close()
        self._buffers.pop(connection.spec.name, None)

    def _connection_moved(self, spec: BackendSpec, state: ConnectionState) -> None:
        match state.status:
            case ConnectionStatus.CONNECTED:
                log.info("server_connected", server=spec.name, url=spec.target.label)
            case ConnectionStatus.DISCONNECTED:
                log.info("server_disconnected", server=spec.name, reason=state.reason)
            case ConnectionStatus.ERROR:
                log.warning("server_connect_failed", server=spec.name, error=state.reason)

    # What backends say.

    def buffers(self, server: str) -> ServerBuffers:
        buffers = self._buffers.get(server)
        if buffers is None:
            buffers = self._buffers[server] = ServerBuffers(server, self.limits)
        return buffers

    def buffers_of(self, server: str | None) -> list[ServerBuffers]:
        """Those of one server, or of all. Raises: UnknownBackend."""
        if server is None:
            return list(self._buffers.values())
        self.connection(server)
        return [self.buffers(server)]

    def backend_changed(self, server: str, method: str) -> None:
        if connection := self._connections.get(server):
            connection.changed(method)

    # Calls.

    async def call(
        self,
        backend: str,
        method: str,
        params: JsonObject,
        *,
        timeout: float | None,
        on_progress: OnProgress | None = None,
    ) -> JsonObject:
        """The backend's raw result. If the wait is cancelled, so is the call.

        Raises:
            EmceepeeError
        """
        connection = self.connection(backend)
        patience = self._patience(connection, timeout)
        call = Call(backend=backend, method=method, params=params, on_progress=on_progress)
        call.runner = self._calls.spawn(self._run(call, connection), name=method)
        try:
            return await within(self.clock, patience, call.outcome)
        except TimeoutError:
            call.cancel()
            raise TimedOut(
                f'Server "{backend}" did not answer {method} within {patience:g} s; the call was cancelled. '
                "Give it longer with timeout_ms (up to 900000).",
                details={"server": backend, "timeoutMs": round(patience * 1000)},
            ) from None
        except asyncio.CancelledError:
            call.cancel()
            raise

    async def _run(self, call: Call, connection: Connection) -> None:
        try:
            result = await connection.request(call.method, call.params, origin=call)
        except Exception as error:  # a defect of ours too: whoever waits must not wait for ever
            if not call.outcome.done():
                call.outcome.set_exception(error)
                call.outcome.exception()  # the one who asked may have left
        except asyncio.CancelledError:
            call.outcome.cancel()
            raise
        else:
            call.outcome.set_result(result)

    def _patience(self, connection: Connection, timeout: float | None) -> float:
        if timeout is not None:
            if timeout > self.limits.longest_call_seconds:
                most = round(self.limits.longest_call_seconds * 1000)
                raise InvalidArguments(f"timeout_ms may be at most {most}.", details={"most": most})
            return timeout
        return connection.spec.timeout if connection.spec.timeout is not None else self.limits.call_seconds
