"""Settings that apply to all future links of a connection: the log level and the resource subscriptions."""

from collections.abc import Awaitable, Callable, Iterable

from emceepee.backends.connection_events import Observer
from emceepee.backends.link import Link, LinkError, RpcError
from emceepee.backends.links.subscriptions import Subscriptions
from emceepee.clock import Clock, give_up_after
from emceepee.errors import Unsupported
from emceepee.state.limits import Limits
from emceepee.telemetry.logs import EventLog

log = EventLog("backends")
RunBounded = Callable[[Callable[[Link], Awaitable[None]], str], Awaitable[None]]


class LinkSettings:
    """The settings of one connection. They apply to the current link, and are restored on each new one."""

    def __init__(
        self,
        server: str,
        subscriptions: Subscriptions,
        observer: Observer,
        *,
        ready: Callable[[], Awaitable[Link]],
        run_bounded: RunBounded,
        clock: Clock,
        limits: Limits,
    ) -> None:
        self._server, self._subscriptions, self._observer = server, subscriptions, observer
        self._ready, self._run_bounded, self._clock, self._limits = ready, run_bounded, clock, limits
        self.log_level: str | None = None

    @property
    def subscriptions(self) -> list[str]:
        return sorted(self._subscriptions.uris)

    async def set_log_level(self, level: str) -> None:
        """Raises: EmceepeeError."""
        link = await self._ready()
        if "logging" not in link.facts.capabilities:
            raise Unsupported(f'Server "{self._server}" offers no logging.', details={"server": self._server})
        self.log_level = level
        self._observer.keep_settings(self._server)
        await self._run_bounded(self._send_log_level, "logging/setLevel")

    async def subscribe(self, uri: str) -> None:
        """Raises: EmceepeeError."""
        await self._run_bounded(lambda _: self._subscriptions.add(uri), "resources/subscribe")
        self._observer.keep_settings(self._server)

    async def unsubscribe(self, uri: str) -> None:
        """Raises: EmceepeeError."""
        await self._run_bounded(lambda _: self._subscriptions.remove(uri), "resources/unsubscribe")
        self._observer.keep_settings(self._server)

    def take_over(self, log_level: str | None, uris: Iterable[str]) -> None:
        """Adopt the settings of a connection that this one replaces, or of a process that has ended."""
        self.log_level = log_level
        self._subscriptions.uris |= set(uris)

    async def restore(self, link: Link) -> None:
        """Restore all settings on a new link. The link is used even if it rejects them or takes too long."""
        try:
            async with give_up_after(self._clock, self._limits.connect_seconds):
                await self._send_log_level(link)
                await self._subscriptions.restore()
        except (RpcError, LinkError, TimeoutError) as error:
            log.warning("state_not_restored", server=self._server, error=str(error) or type(error).__name__)

    async def _send_log_level(self, link: Link) -> None:
        if self.log_level is None or "logging" not in link.facts.capabilities:
            return
        if link.facts.is_modern:
            link.set_log_level(self.log_level)
        else:
            await link.request("logging/setLevel", {"level": self.log_level})
