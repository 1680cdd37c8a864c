"""Everything that only HTTP needs: `emceepee serve`, and the console beside a stdio caller."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from urllib.parse import urlsplit

from emceepee.app.reloader import Reloader, follow_file
from emceepee.app.session_parts import (
    Invite,
    follow_changes,
    notice_options,
    observing,
    open_store,
    served_tools,
    session_parts,
    shared_changes,
)
from emceepee.backends.oauth.metadata.well_known import is_loopback_host
from emceepee.clock import Clock, SystemClock
from emceepee.config.settings import Config, HttpConfig
from emceepee.config.source import ConfigSource
from emceepee.console.api import ConsoleApi
from emceepee.console.assets import Assets, package_files
from emceepee.console.console_app import ConsoleApp
from emceepee.console.console_login import LOGIN_PATH
from emceepee.console.overview import resident_bytes
from emceepee.console.peers import PeerConsoles
from emceepee.guard.access_control import AccessControl, AccessRules
from emceepee.guard.login_throttle import LoginThrottle
from emceepee.guard.logins import LOGIN_SECONDS, SHORT_LOGIN_SECONDS, Logins
from emceepee.guard.policy import AddServerPolicy
from emceepee.lifecycle import TaskOwner
from emceepee.replicas.replication import Replication
from emceepee.server.dispatch import Tools
from emceepee.server.http.http_endpoint import HttpEndpoint, HttpParts
from emceepee.server.http.metrics_app import MetricsApp, metrics_listener
from emceepee.server.http.uvicorn_server import serve_http
from emceepee.server.metrics import Metrics, MetricSources
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.logins.server_logins import FixedCallback
from emceepee.sessions.parts import SessionParts
from emceepee.store.store import Store
from emceepee.surface import use_surface
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.loop_lag import LoopLag
from emceepee.telemetry.request_metrics import RequestMetrics
from emceepee.web.callback import CALLBACK_PATH

log = EventLog("app")
NO_PUBLIC_URL = "emceepee was started without --public-url, so a browser on another machine cannot return to it."
CONSOLE_HOST = "127.0.0.1"  # the host of the console beside a stdio caller; always loopback
REPLICA_HOST = "127.0.0.1"  # the default host at which replicas reach each other
CONSOLE_CLOSE_SECONDS = 3.0  # the console's shutdown timeout for open requests after the caller disconnected


async def run_http(
    config: Config, *, announce: Callable[[str], object], invite: Invite | None, source: ConfigSource | None = None
) -> None:
    """`emceepee serve`: serve many callers at /mcp. `announce` is called with the address once the port is open.

    Without `invite`, the link to the console is not shown.
    """
    use_surface(config.surface)  # messages of automatic events are phrased for this surface
    clock, callback = SystemClock(), FixedCallback()
    figures = RequestMetrics(spec.name for spec in config.servers) if config.telemetry.wants_metrics else None
    async with (
        listen_for_replicas(config, clock) as replication,
        open_store(config, clock, address=replication.address) as store,
        observing(config, clock, figures) as observers,
        session_parts(config, clock, store, callback, observers, has_replicas=replication.has_others) as parts,
        replication.joined(store) as replicas,
    ):
        seconds = SHORT_LOGIN_SECONDS if config.http.oauth_issuer else LOGIN_SECONDS
        kept = store if store.is_durable else None
        logins = Logins(clock, seconds=seconds, store=kept) if config.http.has_console else None
        placement = None if replicas is None else replicas.placement
        directory = SessionDirectory(parts, store, placement)
        made = http_parts(config, directory, clock, logins, peers=replication.consoles)
        made = replace(made, replicas=replicas, logins=parts.logins)
        metrics = None if figures is None else metrics_of(figures, directory, parts, store)
        if metrics is not None and config.telemetry.metrics:
            made = replace(made, metrics=MetricsApp(metrics, made.gate))
        endpoint = HttpEndpoint(made)
        console = made.fallback if isinstance(made.fallback, ConsoleApp) else None
        if logins is not None:
            await logins.load()

        async def is_open(address: str) -> None:
            set_callback(callback, config.http, address)
            announce(address)
            if logins is not None and invite is not None:
                await welcome(address, config.http, logins, invite)

        def take_over(config: Config) -> None:
            made.methods.servers = config.servers
            directory.set_notice_options(notice_options(config))

        try:
            async with (
                follow_changes(shared_changes(store, parts, logins)),
                follow_file(source, lambda source: Reloader(source, config, parts.registry, clock, take_over)),
                replication.serving(endpoint, console),
                listen_for_scrapes(config, metrics, made),
            ):
                await directory.look_after_store()
                await serve_http(
                    endpoint,
                    host=config.http.host,
                    port=config.http.port,
                    limits=config.limits,
                    announce=is_open,
                    shares_port=config.http.shares_port,
                )
        finally:
            await endpoint.close()
            await endpoint.directory.close_all()
            if made.oauth is not None:
                await made.oauth.close()


@asynccontextmanager
async def listen_for_replicas(config: Config, clock: Clock) -> AsyncIterator[Replication]:
    """Raises: OSError."""
    if config.location.is_memory:
        yield Replication(clock, config.limits)
        return
    usual = None if config.location.path is not None else (REPLICA_HOST, 0)
    async with Replication.listening(
        clock, config.limits, config.replicas.listen or usual, config.replicas.tls_files
    ) as replication:
        yield replication


async def welcome(address: str, http: HttpConfig, logins: Logins, invite: Invite) -> None:
    """Announce the console: a login link for a sole principal, else the address of the login page."""
    address = reachable(address)
    if http.sole_principal is None:
        invite(f"{address}{LOGIN_PATH}")
        return
    await logins.codes.invite(http.sole_principal, lambda code: invite(f"{address}{LOGIN_PATH}?code={code}"))


def reachable(address: str) -> str:
    """Return an address that a local browser can open. Wildcard addresses such as 0.0.0.0 become loopback."""
    return address.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]")


def set_callback(callback: FixedCallback, http: HttpConfig, address: str) -> None:
    """Set the redirect address of logins. Without --public-url it is on loopback: codes travel with TLS or not at all.

    If emceepee does not listen on loopback, the redirect fails, and the user pastes the address of that page instead.
    """
    if http.public_url:
        callback.url = http.public_url.rstrip("/") + CALLBACK_PATH
        return
    parts = urlsplit(reachable(address))
    is_local = is_loopback_host(parts.hostname or "")
    host = parts.netloc if is_local else f"127.0.0.1:{parts.port}"
    callback.url, callback.advice = f"http://{host}{CALLBACK_PATH}", "" if http.is_loopback else NO_PUBLIC_URL


def gate_rules(http: HttpConfig, *, only_logins: bool = False) -> AccessRules:
    return AccessRules(
        tokens=http.tokens,
        hosts=frozenset(http.allow_hosts) | ({urlsplit(http.public_url).netloc} if http.public_url else set()),
        origins=frozenset(http.allow_origins),
        any_host=http.asks_for_proof and not http.is_loopback and not http.allow_hosts,
        any_address=not http.is_loopback,
        only_logins=only_logins,
    )


def http_parts(
    config: Config,
    directory: SessionDirectory,
    clock: Clock,
    logins: Logins | None = None,
    *,
    only_logins: bool = False,
    peers: PeerConsoles | None = None,
) -> HttpParts:
    """Build the parts of the HTTP server. With `logins`, they include a console, which also shows data of `peers`."""
    http, limits = config.http, config.limits
    oauth = None
    if http.oauth_issuer and http.oauth_resource:
        from emceepee.guard.oauth import OAuthCheck  # imported here: signature verification takes 10 MB

        oauth = OAuthCheck(
            http.oauth_issuer,
            resource=http.oauth_resource,
            scopes=http.oauth_scopes,
            clock=clock,
            egress=config.egress,
        )
    gate = AccessControl(gate_rules(http, only_logins=only_logins), oauth, logins, LoginThrottle(clock))
    tools = served_tools(config)
    memory = resident_bytes if http.sole_principal is not None else lambda: None
    return HttpParts(
        methods=ProtocolMethods(tools, servers=config.servers),
        tools=Tools(tools, config.surface),
        directory=directory,
        gate=gate,
        policy=AddServerPolicy(
            remote_commands=http.allow_commands, asks_for_proof=http.asks_for_proof, urls=http.allow_urls
        ),
        oauth=oauth,
        requires_session=http.require_session,
        body_bytes=limits.request_body_bytes,
        fallback=ConsoleApp(
            gate, logins, ConsoleApi(directory, clock, limits, peers, memory=memory), Assets(package_files())
        )
        if logins
        else None,
    )


@asynccontextmanager
async def console_of(
    directory: SessionDirectory, config: Config, parts: SessionParts, invite: Invite
) -> AsyncIterator[Callable[[], None]]:
    """Yield a function that opens the console for the sessions of `directory`, on loopback."""
    http = HttpConfig(host=CONSOLE_HOST, port=config.console_port or 0)
    config = replace(config, http=http)
    tasks, stopped = TaskOwner("console"), asyncio.Event()

    async def serve() -> None:
        logins = Logins(parts.clock)
        made = http_parts(config, directory, parts.clock, logins, only_logins=True)
        endpoint = HttpEndpoint(replace(made, finish_seconds=0))
        try:
            await serve_http(
                endpoint,
                host=http.host,
                port=http.port,
                limits=config.limits,
                announce=lambda address: welcome(address, http, logins, invite),
                stopped=stopped,
            )
        except OSError as error:
            log.warning("console_not_opened", port=http.port, error=str(error))
        finally:
            await endpoint.close()

    serving: list[asyncio.Task[None]] = []
    try:
        yield lambda: serving.append(tasks.spawn(serve(), name="serve"))
    finally:
        stopped.set()
        if serving:
            await asyncio.wait(serving, timeout=CONSOLE_CLOSE_SECONDS)
        await tasks.close(within=CONSOLE_CLOSE_SECONDS)


def metrics_of(figures: RequestMetrics, directory: SessionDirectory, parts: SessionParts, store: Store) -> Metrics:
    sources = MetricSources(
        requests=figures,
        directory=directory,
        backends=parts.dialer.figures,
        store=store,
        lag=LoopLag(parts.clock),
        clock=parts.clock,
    )
    return Metrics(sources, replica=str(store.replica.slot if store.replica is not None else 0))


@asynccontextmanager
async def listen_for_scrapes(config: Config, metrics: Metrics | None, parts: HttpParts) -> AsyncIterator[None]:
    """Update the metrics in the background, and serve them at a separate address if one is configured."""
    if metrics is None:
        yield
        return
    with metrics.following():
        if (listen := config.telemetry.metrics_listen) is None:
            yield
            return
        host, port = listen
        app = MetricsApp(metrics, AccessControl(gate_rules(replace(config.http, host=host)), parts.oauth))
        async with metrics_listener(app, host, port, config.limits, lambda url: log.info("metrics_listen", url=url)):
            yield
