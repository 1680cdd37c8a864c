"""The servers of one session. Its caller, the principal's other sessions, and the operator add and remove them."""

import asyncio
from contextlib import suppress
from hashlib import blake2b
from typing import Protocol

from emceepee.backends.connection import Connection
from emceepee.backends.connection_events import Observer
from emceepee.backends.spec import BackendSpec, HttpTarget, UnusableTarget
from emceepee.errors import (
    BackendDisconnected,
    DisabledBackend,
    EmceepeeError,
    ExecutionFailed,
    InvalidArguments,
    LoginNeeded,
    UnknownBackend,
)
from emceepee.sessions.asker import Asker
from emceepee.sessions.backend_listener import BackendListener, ListenerOwner
from emceepee.sessions.events.change_signal import ChangeSignal
from emceepee.sessions.logins.authorizer import SessionAuthorizer
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.records import ServerRecord, SessionProfile
from emceepee.sessions.secret_records import ServerKey
from emceepee.state.connection.connection_state import ConnectionStatus
from emceepee.state.events import EventType
from emceepee.state.session_key import SessionKey
from emceepee.surface import call_to


class ServersOwner(ListenerOwner, Observer, Protocol):
    """The parts of a session that `SessionServers` needs."""

    principal: str
    profile: SessionProfile
    change_signal: ChangeSignal
    keys: frozenset[SessionKey]
    is_awake: bool

    def fail_all_of(self, server: str, reason: str) -> None: ...
    def forget_server(self, name: str) -> None: ...


class SessionServers:
    """One connection per server. The registry supplies the list of servers and notifies the session of changes."""

    __slots__ = (
        *("_authorizers", "_dialer", "_has_left", "_logins", "_principal", "_registry", "_session", "_spread"),
        "connections",
    )

    def __init__(self, session: ServersOwner, parts: SessionParts) -> None:
        self._session, self._principal = session, session.principal
        self._registry, self._dialer, self._logins = parts.registry, parts.dialer, parts.logins
        self._spread = parts.spread
        self._has_left = False
        self.connections: dict[str, Connection] = {}
        self._authorizers: dict[Connection, SessionAuthorizer] = {}  # of the connections that may log in

    async def open(self) -> None:
        """Load the list of servers. Nothing is connected yet."""
        await self._registry.load(self._principal)
        for spec in self._registry.join(self._principal, self).values():
            self.connections[spec.name] = self._connection(spec)

    @property
    def are_unsaved(self) -> bool:
        """Whether a change of the principal's servers is not stored yet."""
        return self._registry.has_unsaved(self._principal)

    def leave(self) -> None:
        """Stop receiving changes. Discard connections that are still being made for the session."""
        self._has_left = True
        self._registry.leave(self._principal, self)

    def leave_logins(self) -> None:
        """Stop waiting for logins in this session."""
        for authorizer in self._authorizers.values():
            authorizer.leave()

    def start(self) -> None:
        for connection in self.connections.values():
            connection.start()

    async def rest(self) -> None:
        await asyncio.gather(*(connection.rest() for connection in self.connections.values()))

    def stop_idle_processes(self) -> None:
        """Stop stdio servers that nothing depends on, until they are used again."""
        for connection in self.connections.values():
            connection.stop_idle_process()

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self.connections.values()))

    def find(self, name: str) -> Connection:
        """Raises: UnknownBackend, DisabledBackend."""
        connection = self.connections.get(name)
        if connection is not None:
            return connection
        if (error := self.disabled_errors().get(name)) is not None:
            raise error
        raise UnknownBackend(name, known=self.connections, are_forgotten=self._registry.may_have_forgotten)

    def disabled_errors(self) -> dict[str, DisabledBackend]:
        """Return an error with a remedy for each disabled server, by its name."""
        in_file = 'Remove "disabled" from its entry in the configuration file to enable it.'
        added = f"A person can enable it in the console, or call {call_to('add_server')} with replace."
        remedies = {spec.name: in_file for spec in self.disabled_in_file}
        remedies |= {spec.name: added for spec in self.disabled}
        return {name: DisabledBackend(name, remedy=remedy) for name, remedy in remedies.items()}

    # Requests from callers.

    async def add(self, spec: BackendSpec) -> Connection:
        """Connect the server, then add it for all sessions of the principal. A login request counts as connected.

        Raises:
            InvalidArguments: the name belongs to another configuration.
            ExecutionFailed: the connection failed; the server was not added.
        """
        await self._registry.catch_up(self._principal)
        while trial := self._registry.trials.find_same(self._principal, spec):
            await asyncio.wait({trial.outcome})
            if not trial.outcome.cancelled() and isinstance(error := trial.outcome.exception(), EmceepeeError):
                raise EmceepeeError(str(error), code=error.code, details=error.details) from error
        known = self.connections.get(spec.name)
        if known is not None and known.spec == spec:
            with suppress(LoginNeeded):
                if known.state.status in (ConnectionStatus.ERROR, ConnectionStatus.DISCONNECTED):
                    await known.reconnect()  # a caller who adds the server again wants it to work
                await known.ready()
            return known
        with self._registry.reserve_name(self._principal, spec) as trial:
            connection = self._connection(spec)
            try:
                with suppress(LoginNeeded):
                    await connection.first_link()
            except EmceepeeError as error:
                await self._discard(connection)
                raise ExecutionFailed(
                    f'Server "{spec.name}" was not added, because it could not be connected: '
                    f"{connection.state.reason}. Correct the settings and call {call_to('add_server')} again.",
                    details={"server": spec.name, "url": spec.target.label},
                ) from error
            except BaseException:
                trial.is_cancelled = True
                await self._discard(connection)
                raise
            try:
                await self._registry.save(self._principal, spec)
            except BaseException:
                await self._discard(connection)
                raise
            self._registry.add(self._principal, spec, by=self)
            if self._has_left:
                await self._discard(connection)
            else:
                self.connections[spec.name] = connection
        return connection

    async def replace(self, spec: BackendSpec) -> Connection:
        """Change the settings of an added server and enable it, if it can be connected with them.

        Raises:
            UnknownBackend, NotAllowed: the server is unknown, or it is the operator's.
            ExecutionFailed: the connection failed; the server has its previous settings, and reconnects.
        """
        await self._registry.catch_up(self._principal)
        with self._registry.reserve_name(self._principal, spec, replaces=True):
            known = self.connections.get(spec.name)
            before = None if known is None else known.spec
            try:
                connection = await self._configure(spec)
                with suppress(LoginNeeded):
                    await connection.first_link()
                await self._registry.save_change(self._principal, spec)
            except BaseException as error:
                failed = self.connections.get(spec.name)
                reason = str(error) if failed is None else failed.state.reason
                if not self._has_left:
                    await (self.on_server_removed(spec.name) if before is None else self.on_server_configured(before))
                if not isinstance(error, BackendDisconnected):
                    raise
                raise ExecutionFailed(
                    f'Server "{spec.name}" was not changed, because it could not be connected: {reason}. Correct the '
                    "settings and try again.",
                    details={"server": spec.name, "url": spec.target.label},
                ) from error
            await self._registry.change(self._principal, spec, by=self)
            self._session.change_signal.notify()
        return connection

    @property
    def disabled(self) -> list[BackendSpec]:
        """Return the added servers that are disabled and can be enabled again."""
        return self._registry.disabled_of(self._principal)

    @property
    def disabled_in_file(self) -> list[BackendSpec]:
        """Return the disabled servers of the configuration file."""
        return self._registry.disabled_operators_of(self._principal)

    def is_configured(self, server: str) -> bool:
        """Whether the operator configured the server. False for an added one."""
        return self._registry.is_operators(self._principal, server)

    def added(self, name: str) -> BackendSpec:
        """Return an added server, even if it is disabled. Raises: UnknownBackend, NotAllowed."""
        return self._registry.find_added(self._principal, name)

    async def disable(self, name: str) -> None:
        """Disable the server for all sessions of the principal. Raises: UnknownBackend, NotAllowed."""
        await self._registry.catch_up(self._principal)
        await self._registry.disable(self._principal, name)

    async def enable(self, name: str) -> None:
        """Raises: UnknownBackend, NotAllowed."""
        await self._registry.catch_up(self._principal)
        await self._registry.enable(self._principal, name)

    async def remove(self, name: str, *, is_remote: bool = False) -> None:
        """Remove the server, and return when its process tree has ended. Raises: UnknownBackend, NotAllowed."""
        await self._registry.catch_up(self._principal)
        is_disabled = self._registry.is_disabled(self._principal, name)
        spec = self.added(name) if is_disabled else self.find(name).spec
        await self._registry.remove(self._principal, name, is_remote=is_remote)
        if self._logins is not None:
            await self._logins.log_out(self._principal, spec)

    async def finish_login(self, name: str, url: str) -> Connection:
        """Finish a login with the redirect address that a browser could not deliver. Raises: EmceepeeError."""
        connection = self.find(name)
        authorizer = self._authorizers.get(connection)
        if authorizer is None:
            raise InvalidArguments(
                f'Server "{name}" is not logged in to: it needs no login, or has a token configured.'
            )
        await authorizer.finish(url)
        await connection.ready()
        return connection

    def ask_for_login(self, name: str, asker: Asker | None) -> None:
        """Ask this caller natively to complete a pending login, if its client supports such questions."""
        authorizer = self._authorizers.get(self.find(name))
        if authorizer is not None and asker is not None:
            authorizer.ask_natively(asker)

    # Notifications from the registry.

    def on_server_added(self, spec: BackendSpec) -> None:
        """Add a server that another session of the principal added. It connects on first use."""
        self.connections[spec.name] = self._connection(spec)
        self._session.activity.emit(EventType.SERVER_ADDED, spec.name, name=spec.name, url=spec.target.label)

    async def on_server_removed(self, name: str) -> None:
        """Fail the server's calls, reject its questions, and end its process tree."""
        connection = self.connections.pop(name, None)
        if connection is not None:
            self._session.fail_all_of(name, f'Server "{name}" was removed.')
            await self._discard(connection)
            self._session.activity.emit(EventType.SERVER_REMOVED, name, name=name)

    async def on_server_configured(self, spec: BackendSpec) -> None:
        """Apply a new or changed server of the operator's configuration. If its settings differ, its calls fail."""
        before = self.connections.get(spec.name)
        connection = await self._configure(spec)
        is_new = connection is not before and self.connections.get(spec.name) is connection
        if is_new and self._session.is_awake and not self._session.profile.connects_on_use:
            connection.start()

    async def _configure(self, spec: BackendSpec) -> Connection:
        """Return the server's connection with these settings. Replace the connection if the settings differ."""
        name, before = spec.name, self.connections.get(spec.name)
        if before is not None and before.spec == spec:
            before.spec = spec
            self._session.change_signal.notify()
            return before
        connection = self.connections[name] = self._connection(spec)
        if before is None:
            self._session.activity.emit(EventType.SERVER_ADDED, name, name=name, url=spec.target.label)
        else:
            connection.settings.take_over(before.settings.log_level, before.settings.subscriptions)
            is_usable = not isinstance(spec.target, UnusableTarget)
            if before.is_connected:
                reason = "its configuration was changed" + ("" if is_usable else ", and has a mistake now")
                self._session.activity.emit(EventType.SERVER_DISCONNECTED, name, name=name, reason=reason)
            outcome = "so the server reconnects" if is_usable else "and has a mistake now"
            self._session.fail_all_of(
                name,
                f'The configuration of server "{name}" was changed during the call, {outcome}. '
                "The call may have run there: check before you repeat it.",
            )
            await self._discard(before)
        return connection

    def on_disabled_changed(self) -> None:
        self._session.change_signal.notify()

    def configuration_problem(self, *, is_remote: bool) -> str | None:
        """Return why the operator's current configuration is not in use, or None."""
        return self._registry.problem_for(is_remote=is_remote)

    def record(self, name: str) -> ServerRecord | None:
        """Return the caller's settings that apply to each new link, or None if there are none."""
        connection = self.connections.get(name)
        if connection is None or not (connection.settings.log_level or connection.is_listening):
            return None
        settings = connection.settings
        return ServerRecord(log_level=settings.log_level, subscriptions=tuple(settings.subscriptions))

    def _connection(self, spec: BackendSpec) -> Connection:
        authorizer = None
        if self._logins is not None and isinstance(spec.target, HttpTarget) and spec.target.may_log_in:

            def end_login(reason: str | None) -> None:
                connection.end_login(reason)  # the connection is created below, because it needs the authorizer

            authorizer = SessionAuthorizer(
                self._logins,
                ServerKey(self._principal, spec.name, spec.target.url),
                spec.target,
                self._session.questions,
                self._session.calls,
                on_end=end_login,
                on_trouble=self._session.change_signal.notify,
            )
        connection = Connection(
            spec,
            BackendListener(self._session, spec.name, self._dialer.roots_of(spec)),
            self._session,
            dialer=self._dialer,
            clock=self._session.clock,
            limits=self._session.limits,
            caller_id=self._caller_id(spec.name),
            principal=self._principal,
            authorizer=authorizer,
            spread=self._spread,
        )
        if authorizer is not None:
            self._authorizers[connection] = authorizer
        return connection

    def _caller_id(self, server: str) -> str | None:
        """Return a separate caller id for each backend, for state per caller. Backends cannot correlate the ids.

        None for a session that ends with its process: a server would keep state for an id that it never sees again.
        """
        if not self._session.keys:
            return None
        return blake2b(server.encode(), key=self._session.profile.secret.encode(), digest_size=16).hexdigest()

    async def _discard(self, connection: Connection) -> None:
        if (authorizer := self._authorizers.pop(connection, None)) is not None:
            authorizer.give_up()
        connection.forget_era()
        await connection.close()
        self._session.forget_server(connection.spec.name)
