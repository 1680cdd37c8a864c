"""A session's connection to one backend: opened when needed, owned by one task, closed without leftovers."""

import asyncio
from collections.abc import Callable

from emceepee.backends.catalog import Catalog, Kind
from emceepee.backends.dialer import CLOSE_SECONDS, Dialer
from emceepee.backends.link import Failure, Link, LinkError, Listener, RpcError, ServerFacts
from emceepee.backends.spec import BackendSpec
from emceepee.clock import Clock
from emceepee.errors import BackendDisconnected, EmceepeeError, ExecutionFailed, Unsupported
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner, close_bounded
from emceepee.state.connection import ConnectionState, ConnectionStatus
from emceepee.state.limits import Limits
from emceepee.telemetry.logs import EventLog

log = EventLog("backends")
Observer = Callable[[ConnectionState], None]
CLOSED = "the connection was closed"


class Connection:
    """`state` says where it stands; `ready()` waits for the link; `close()` leaves nothing behind."""

    def __init__(
        self, spec: BackendSpec, listener: Listener, observer: Observer, *, dialer: Dialer, clock: Clock, limits: Limits
    ) -> None:
        self.spec = spec
        self.state = ConnectionState()
        self.log_level: str | None = None
        self._listener, self._observer = listener, observer
        self._dialer, self._clock, self._limits = dialer, clock, limits
        self._tasks = TaskOwner(f"connection:{spec.name}")
        self._owner: asyncio.Task[None] | None = None
        self._reconnecting = asyncio.Lock()
        self._opening: asyncio.Future[Link] | None = None
        self._link: Link | None = None
        self._catalog: Catalog | None = None

    def __repr__(self) -> str:
        return f"<Connection {self.spec.name} {self.state.status}>"

    @property
    def is_connected(self) -> bool:
        return self.state.status is ConnectionStatus.CONNECTED

    @property
    def facts(self) -> ServerFacts | None:
        return self._link.facts if self._link else None

    @property
    def process(self) -> JsonObject | None:
        return self._link.process() if self._link else None

    def known_tools(self) -> list[JsonObject] | None:
        """The permitted tools, if the list is at hand."""
        tools = self._catalog.known(Kind.TOOLS) if self._catalog else None
        return None if tools is None else self._permitted(tools)

    # Opening and closing.

    def start(self) -> None:
        """Begin to connect, unless that was done before."""
        if self.state.status is ConnectionStatus.NOT_CONNECTED:
            self._open()

    async def ready(self) -> Link:
        """The link, as soon as it is there.

        Raises:
            BackendDisconnected: it could not be opened, or is lost.
        """
        if self._link is not None:
            return self._link
        self.start()
        if self._opening is None:
            raise self.unavailable()
        return await asyncio.shield(self._opening)

    async def reconnect(self) -> Link:
        """A fresh link from any state. Who comes while another reconnects shares that one's link."""
        shares = self._reconnecting.locked()
        async with self._reconnecting:
            if not shares or (self._link is None and self._opening is None):
                await self._end_owner()
                self._open()
        return await self.ready()

    async def close(self) -> None:
        await self._end_owner()
        await self._tasks.close(within=CLOSE_SECONDS)

    def unavailable(self) -> EmceepeeError:
        """Why there is no link, and what to do."""
        name, reason = self.spec.name, self.state.reason or "it was not connected yet"
        what = "could not be connected" if self.state.status is ConnectionStatus.ERROR else "is disconnected"
        return BackendDisconnected(
            f'Server "{name}" {what}: {reason}. Try reconnect_server, or remove it and add it with other settings.',
            details={"server": name, "status": str(self.state.status)},
        )

    def _open(self) -> None:
        self._opening = asyncio.get_running_loop().create_future()
        self._move(self.state.connecting())
        self._owner = self._tasks.spawn(self._own(self._opening), name="owner")

    async def _end_owner(self) -> None:
        owner, self._owner = self._owner, None
        if owner is not None and not owner.done():
            owner.cancel()
            await asyncio.wait({owner}, timeout=CLOSE_SECONDS)
        if self._opening is not None:
            self._failed(self._opening, CLOSED)  # the owner was cancelled before its first step

    async def _own(self, opening: "asyncio.Future[Link]") -> None:
        """The one task that opens the link, watches it and closes it."""
        try:
            async with asyncio.timeout(self._limits.connect_seconds):
                link = await self._dialer.dial(self.spec, self._listener)
        except (RpcError, LinkError, TimeoutError) as error:
            self._failed(opening, self._reason(error))
            return
        except asyncio.CancelledError:
            self._failed(opening, CLOSED)
            raise
        reason = CLOSED
        try:
            await self._restore_or_log(link)
            self._link = link
            self._catalog = Catalog(link, self._clock, tasks=self._tasks, most_pages=self._limits.list_pages)
            self._opening = None
            self._move(self.state.connected(self._clock.now()))
            opening.set_result(link)
            reason = await asyncio.shield(link.closed)
        finally:
            self._link = self._catalog = self._opening = None
            self._failed(opening, reason)
            if self.is_connected:
                self._move(self.state.lost(reason))
            await close_bounded(link.close(), within=CLOSE_SECONDS, what=f"the link to {self.spec.name}")

    def _failed(self, opening: "asyncio.Future[Link]", reason: str) -> None:
        """Tell those who wait, unless they have been told."""
        if opening.done():
            return
        self._opening = None
        self._move(self.state.failed(reason))
        opening.set_exception(self.unavailable())
        opening.exception()  # there may be nobody waiting

    def _reason(self, error: Exception) -> str:
        if isinstance(error, TimeoutError):
            return f"it did not answer within {self._limits.connect_seconds:g} s"
        return str(error)

    def _move(self, state: ConnectionState) -> None:
        self.state = state
        self._observer(state)

    # Asking.

    async def request(self, method: str, params: JsonObject, *, origin: object | None = None) -> JsonObject:
        """Ask the backend and return its raw result.

        Raises:
            EmceepeeError: in the words of a caller.
        """
        link = self._link or await self.ready()
        try:
            headers = None
            if link.mirrors_arguments and method == "tools/call" and self._catalog is not None:
                headers = await self._catalog.param_headers(params["name"], params.get("arguments") or {})
            return await link.request(method, params, origin=origin, headers=headers)
        except (RpcError, LinkError) as error:
            raise self._translated(error, method) from error

    async def entries(self, kind: Kind) -> list[JsonObject]:
        """All entries of one kind; of tools, the permitted ones.

        Raises:
            EmceepeeError
        """
        await self.ready()
        catalog = self._catalog
        if catalog is None:
            raise self.unavailable()
        try:
            async with asyncio.timeout(self._limits.request_seconds):
                items = await catalog.entries(kind)
        except TimeoutError:
            raise self._too_slow(kind.method) from None
        except (RpcError, LinkError) as error:
            raise self._translated(error, kind.method) from error
        return self._permitted(items) if kind is Kind.TOOLS else items

    async def set_log_level(self, level: str) -> None:
        """From now on, also on links to come. Raises: Unsupported."""
        link = await self.ready()
        if "logging" not in link.facts.capabilities:
            raise Unsupported(f'Server "{self.spec.name}" offers no logging.', details={"server": self.spec.name})
        self.log_level = level
        try:
            await self._restore(link)
        except TimeoutError:
            raise self._too_slow("logging/setLevel") from None
        except (RpcError, LinkError) as error:
            raise self._translated(error, "logging/setLevel") from error

    def changed(self, method: str) -> None:
        """A change notification came."""
        if self._catalog is not None:
            self._catalog.changed(method)

    async def _restore_or_log(self, link: Link) -> None:
        try:
            await self._restore(link)
        except (RpcError, LinkError, TimeoutError) as error:
            log.warning("log_level_not_restored", server=self.spec.name, error=str(error) or "no answer came")

    async def _restore(self, link: Link) -> None:
        if self.log_level is None or "logging" not in link.facts.capabilities:
            return
        if link.facts.is_modern:
            link.set_log_level(self.log_level)
        else:
            async with asyncio.timeout(self._limits.request_seconds):
                await link.request("logging/setLevel", {"level": self.log_level})

    def _permitted(self, tools: list[JsonObject]) -> list[JsonObject]:
        return [tool for tool in tools if self.spec.tools.permits(str(tool.get("name")))]

    def _too_slow(self, method: str) -> ExecutionFailed:
        seconds = f"{self._limits.request_seconds:g} s"
        return ExecutionFailed(f'Server "{self.spec.name}" did not answer {method} within {seconds}.')

    def _translated(self, error: RpcError | LinkError, method: str) -> EmceepeeError:
        name = self.spec.name
        if isinstance(error, RpcError):
            return ExecutionFailed(
                f'Server "{name}" answered {method} with error {error.error.get("code")}: {error}',
                details={"server": name, "error": error.error},
            )
        if error.failure in (Failure.CLOSED, Failure.UNREACHABLE, Failure.SESSION_LOST):
            return BackendDisconnected(
                f'Server "{name}" was lost during {method}: {error}. It is not known whether the request ran. '
                "Try reconnect_server.",
                details={"server": name, "failure": str(error.failure)},
            )
        return ExecutionFailed(f'Server "{name}" gave no usable answer to {method}: {error}', details={"server": name})
