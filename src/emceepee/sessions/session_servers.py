"""The servers of one session, which its caller, other sessions of its principal and the operator add and remove."""

import asyncio
from contextlib import suppress
from hashlib import blake2b
from typing import Protocol

from emceepee.backends.connection import Connection
from emceepee.backends.connection_events import Observer
from emceepee.backends.spec import BackendSpec, HttpTarget, UnusableTarget
from emceepee.clock import Clock
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
from emceepee.sessions.backend_events import BackendEvents, BackendListener
from emceepee.sessions.calls import Calls
from emceepee.sessions.events.activity import Activity
from emceepee.sessions.events.change_signal import ChangeSignal
from emceepee.sessions.logins.authorizer import SessionAuthorizer
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.questions.questions import Questions
from emceepee.sessions.records import ServerRecord, SessionProfile
from emceepee.sessions.secret_records import ServerKey
from emceepee.state.connection.connection import ConnectionStatus
from emceepee.state.events import EventType
from emceepee.state.limits import Limits
from emceepee.state.session_key import SessionKey
from emceepee.surface import call_to


class ServersOwner(BackendEvents, Observer, Protocol):
    """What they need of their session."""

    principal: str
    clock: Clock
    limits: Limits
    profile: SessionProfile
    activity: Activity
    questions: Questions
    calls: Calls
    change_signal: ChangeSignal
    keys: frozenset[SessionKey]
    is_awake: bool

    def fail_all_of(self, server: str, reason: str) -> None: ...
    def forget_server(self, name: str) -> None: ...


class SessionServers:
    """The registry knows which servers there are, and tells of changes; each has one connection here."""

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
        self._authorizers: dict[Connection, SessionAuthorizer] = {}  # of those that may log in

    async def open(self) -> None:
        """Learn which there are. Nothing is connected yet."""
        await self._registry.load(self._principal)
        for spec in self._registry.join(self._principal, self).values():
            self.connections[spec.name] = self._connection(spec)

    @property
    def are_unsaved(self) -> bool:
        """Whether a change of the principal's servers could not be stored yet."""
        return self._registry.has_unsaved(self._principal)

    def leave(self) -> None:
        """Hear of no more changes. What is being connected for the session is not kept."""
        self._has_left = True
        self._registry.leave(self._principal, self)

    def leave_logins(self) -> None:
        """Nobody here waits for them any more."""
        for authorizer in self._authorizers.values():
            authorizer.leave()

    def start(self) -> None:
        for connection in self.connections.values():
            connection.start()

    async def rest(self) -> None:
        await asyncio.gather(*(connection.rest() for connection in self.connections.values()))

    def stop_idle_processes(self) -> None:
        """Stop the stdio servers that nothing depends on until they are used again."""
        for connection in self.connections.values():
            connection.stop_idle_process()

    async def close(self) -> None:
        await asyncio.gather(*(connection.close() for connection in self.connections.values()))

    def find(self, name: str) -> Connection:
        """Raises: UnknownBackend, DisabledBackend."""
        connection = self.connections.get(name)
        if connection is not None:
            return connection
        if any(spec.name == name for spec in self.disabled):
            remedy = f"A person can enable it in the console, or call {call_to('add_server')} with replace."
            raise DisabledBackend(name, remedy=remedy)
        if any(spec.name == name for spec in self.disabled_in_file):
            remedy = 'Remove "disabled" from its entry in the configuration file to enable it.'
            raise DisabledBackend(name, remedy=remedy)
        raise UnknownBackend(name, known=self.connections, are_forgotten=self._registry.may_have_forgotten)

    # What callers ask for.

    async def add(self, spec: BackendSpec) -> Connection:
        """Connect it, and only then add it for all sessions of the principal; or as soon as it wants a login.

        Raises:
            InvalidArguments: the name belongs to another configuration.
            ExecutionFailed: it could not be connected; nothing of it is left.
        """
        await self._registry.catch_up(self._principal)
        while trial := self._registry.trial_of(self._principal, spec):
            await asyncio.wait({trial.outcome})
            if not trial.outcome.cancelled() and isinstance(error := trial.outcome.exception(), EmceepeeError):
                raise EmceepeeError(str(error), code=error.code, details=error.details) from error
        known = self.connections.get(spec.name)
        if known is not None and known.spec == spec:
            with suppress(LoginNeeded):
                if known.state.status in (ConnectionStatus.ERROR, ConnectionStatus.DISCONNECTED):
                    await known.reconnect()  # a caller who adds it again wants it to work
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
                trial.is_called_off = True
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
        """Give a server that was added other settings, if it can be connected with them; it is enabled then.

        Raises:
            UnknownBackend, NotAllowed: there is none, or it is the operator's.
            ExecutionFailed: it could not be connected; it has the settings from before, and is connected anew.
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
        """Those that were added, and can be enabled again."""
        return self._registry.disabled_of(self._principal)

    @property
    def disabled_in_file(self) -> list[BackendSpec]:
        """Those of the configuration file."""
        return self._registry.disabled_operators_of(self._principal)

    def is_configured(self, server: str) -> bool:
        """Whether it is the operator's, and not one that was added."""
        return self._registry.is_operators(self._principal, server)

    def added(self, name: str) -> BackendSpec:
        """Also one that is disabled. Raises: UnknownBackend, NotAllowed."""
        return self._registry.find_added(self._principal, name)

    async def disable(self, name: str) -> None:
        """For all sessions of the principal, until it is enabled. Raises: UnknownBackend, NotAllowed."""
        await self._registry.catch_up(self._principal)
        await self._registry.disable(self._principal, name)

    async def enable(self, name: str) -> None:
        """Raises: UnknownBackend, NotAllowed."""
        await self._registry.catch_up(self._principal)
        await self._registry.enable(self._principal, name)

    async def remove(self, name: str, *, is_remote: bool = False) -> None:
        """Returns when its process tree is gone. Raises: UnknownBackend, NotAllowed."""
        await self._registry.catch_up(self._principal)
        is_disabled = self._registry.is_disabled(self._principal, name)
        spec = self.added(name) if is_disabled else self.find(name).spec
        await self._registry.remove(self._principal, name, is_remote=is_remote)
        if self._logins is not None:
            await self._logins.log_out(self._principal, spec)

    async def finish_login(self, name: str, url: str) -> Connection:
        """The address at which a browser ended that could not come back here. Raises: EmceepeeError."""
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
        """Put a login that is waited for to this caller by the protocol's own means, if it takes such questions."""
        authorizer = self._authorizers.get(self.find(name))
        if authorizer is not None and asker is not None:
            authorizer.ask_natively(asker)

    # What the registry tells.

    def on_server_added(self, spec: BackendSpec) -> None:
        """Another session of the principal added it; it is connected when it is used."""
        self.connections[spec.name] = self._connection(spec)
        self._session.activity.emit(EventType.SERVER_ADDED, spec.name, name=spec.name, url=spec.target.label)

    async def on_server_removed(self, name: str) -> None:
        """Its calls fail, its questions are rejected, its process tree ends."""
        connection = self.connections.pop(name, None)
        if connection is not None:
            self._session.fail_all_of(name, f'Server "{name}" was removed.')
            await self._discard(connection)
            self._session.activity.emit(EventType.SERVER_REMOVED, name, name=name)

    async def on_server_configured(self, spec: BackendSpec) -> None:
        """The operator's configuration has it now, or says something else of it. Its calls fail if it is another."""
        before = self.connections.get(spec.name)
        connection = await self._configure(spec)
        is_new = connection is not before and self.connections.get(spec.name) is connection
        if is_new and self._session.is_awake and not self._session.profile.connects_on_use:
            connection.start()

    async def _configure(self, spec: BackendSpec) -> Connection:
        """The connection of that server, with these settings from now on."""
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
            outcome = "so it is connected anew" if is_usable else "and has a mistake now"
            self._session.fail_all_of(
                name,
                f'The configuration of server "{name}" was changed during the call, {outcome}. '
                "The call may have run there: look before you repeat it.",
            )
            await self._discard(before)
        return connection

    def on_disabled_changed(self) -> None:
        self._session.change_signal.notify()

    def configuration_problem(self, *, is_remote: bool) -> str | None:
        """Why the operator's configuration, as it is now, is not used."""
        return self._registry.problem_for(is_remote=is_remote)

    def record(self, name: str) -> ServerRecord | None:
        """What a caller asked of the server for all links to come; None if that is nothing."""
        connection = self.connections.get(name)
        if connection is None or not (connection.settings.log_level or connection.is_listening):
            return None
        settings = connection.settings
        return ServerRecord(log_level=settings.log_level, subscriptions=tuple(settings.subscriptions))

    def _connection(self, spec: BackendSpec) -> Connection:
        authorizer = None
        if self._logins is not None and isinstance(spec.target, HttpTarget) and spec.target.may_log_in:
            key = ServerKey(self._principal, spec.name, spec.target.url)
            authorizer = SessionAuthorizer(self._logins, key, spec.target, self._session.questions, self._session.calls)
        connection = Connection(
            spec,
            BackendListener(self._session, spec.name),
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
            authorizer.on_end, authorizer.on_trouble = connection.end_login, self._session.change_signal.notify
            self._authorizers[connection] = authorizer
        return connection

    def _caller_id(self, server: str) -> str | None:
        """An id of its own for each backend, so that they can keep state per caller and cannot compare notes.

        None for a session that ends with its process: a server would keep state for an id that never comes back.
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
