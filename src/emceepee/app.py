"""The composition root: what emceepee is made of. The nesting is the order in which things close."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from emceepee.backends.dialer import Dialer
from emceepee.clock import Clock, SystemClock, milliseconds
from emceepee.codemode.engine import CodeMode
from emceepee.config import Config, HttpConfig
from emceepee.config_source import ConfigSource
from emceepee.console.api import ConsoleApi
from emceepee.console.app import ConsoleApp
from emceepee.console.assets import Assets, package_files
from emceepee.console.login import LOGIN_PATH
from emceepee.console.peers import PeerConsoles
from emceepee.guard.gate import Gate, GateRules
from emceepee.guard.identity import LOCAL
from emceepee.guard.login_throttle import LoginThrottle
from emceepee.guard.logins import LOGIN_SECONDS, SHORT_LOGIN_SECONDS, Logins
from emceepee.guard.oauth import OAuthCheck
from emceepee.guard.policy import AddServerPolicy
from emceepee.ids import Ulids
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.own_files import KEYRING
from emceepee.reloading import Reloader, follow_file
from emceepee.replicas.replication import Replication
from emceepee.server.dispatch import Tools
from emceepee.server.http.endpoint import HttpEndpoint, HttpParts
from emceepee.server.http.metrics_app import MetricsApp, metrics_listener
from emceepee.server.http.uvicorn_server import serve_http
from emceepee.server.metrics import Metrics, MetricSources
from emceepee.server.sdk_server import build_sdk_server, name_servers
from emceepee.server.stdio.endpoint import serve_stdio
from emceepee.sessions.directory import SessionDirectory
from emceepee.sessions.kept_results import ResultStorage
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.registry import ServerRegistry
from emceepee.sessions.results import ResultBudget
from emceepee.sessions.sealing import Sealing
from emceepee.sessions.server_logins import FixedCallback, ServerLogins
from emceepee.sessions.session import Session
from emceepee.sessions.session_storage import SessionStorage
from emceepee.state.events import EventBudget
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.memory import MemoryStore
from emceepee.store.placed_secrets import PlacedSecrets
from emceepee.store.platform_keyring import PlatformKeyring
from emceepee.store.poll import SharedChanges
from emceepee.store.store import Store
from emceepee.surface import use_surface
from emceepee.telemetry.journal import SpanBudget, SpanObserver
from emceepee.telemetry.logs import EventLog
from emceepee.telemetry.loop_lag import LoopLag
from emceepee.telemetry.request_figures import RequestFigures
from emceepee.tools.catalogue import CODE_MODE, TOOLS
from emceepee.tools.declaration import Tool
from emceepee.tools.inner_calls import ToolsForScripts
from emceepee.tools.limited import fit_tools
from emceepee.web.callback import CALLBACK_PATH, CLIENT_PATH, LoopbackCallback

if TYPE_CHECKING:
    from emceepee.sessions.entry_search import SharedVectors

log = EventLog("app")
CONSOLE_HOST = "127.0.0.1"  # of the console beside a caller on standard input; never anything else
REPLICA_HOST = "127.0.0.1"  # where other replicas are taken to be, unless the operator says otherwise
CONSOLE_CLOSE_SECONDS = 3.0  # for its open requests, when the caller has gone
Invite = Callable[[str], object]  # told where a person can open the console


@asynccontextmanager
async def open_store(config: Config, clock: Clock, *, address: str = "") -> AsyncIterator[Store]:
    """`address` is where other replicas reach this process. Raises: StoreUnusable."""
    location = config.location
    if location.is_memory:
        yield MemoryStore()
        return
    opening = _open_redis if location.path is None else _open_sqlite
    store = await opening(config, clock, address)
    try:
        yield store
    finally:
        await store.close()


# Each engine is loaded by whoever uses it, and by nobody else.


async def _open_sqlite(config: Config, clock: Clock, address: str) -> Store:
    from emceepee.store.sqlite import SqliteStore

    location = config.location
    assert location.path is not None  # whoever calls it looked
    return await SqliteStore.open(
        location.path,
        clock,
        key=location.key,
        survives_power_loss=location.survives_power_loss,
        address=address,
        slot=config.replicas.slot,
    )


async def _open_redis(config: Config, clock: Clock, address: str) -> Store:
    from emceepee.store.redis.redis_store import RedisStore

    location = config.location
    assert location.redis is not None  # whoever calls it looked
    return await RedisStore.open(
        location.redis,
        clock,
        key=location.key,
        address=address,
        slot=config.replicas.slot,
        lease_seconds=config.limits.replica_lease_seconds,
    )


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


@asynccontextmanager
async def follow_changes(changes: SharedChanges | None) -> AsyncIterator[None]:
    """Look after what other processes change, if others may."""
    tasks = TaskOwner("store")
    if changes is not None:
        tasks.spawn(changes.run(), name="poll")
    try:
        yield
    finally:
        await tasks.close(within=CLOSE_IDLE_SECONDS)


@asynccontextmanager
async def server_logins(
    config: Config,
    clock: Clock,
    store: Store | None,
    dialer: Dialer,
    callback: FixedCallback | LoopbackCallback | None,
) -> AsyncIterator[ServerLogins]:
    """Browsers come back to `callback`, or to a port of their own that is opened for the first of them."""
    public = config.http.public_url if isinstance(callback, FixedCallback) else None
    document = f"{public.rstrip('/')}{CLIENT_PATH}" if public and public.startswith("https://") else None
    place = callback or LoopbackCallback()
    secrets = PlacedSecrets(store or MemoryStore(), PlatformKeyring(clock), is_preferred=config.secrets == KEYRING)
    logins = ServerLogins(secrets, dialer, clock, place, client_metadata_url=document)
    if isinstance(place, LoopbackCallback):
        place.receive = logins.receive
    try:
        yield logins
    finally:
        await logins.close()
        if isinstance(place, LoopbackCallback):
            await place.close()


@asynccontextmanager
async def session_parts(
    config: Config,
    clock: Clock,
    store: Store | None = None,
    callback: FixedCallback | None = None,
    observers: tuple[SpanObserver, ...] = (),
) -> AsyncIterator[SessionParts]:
    async with (
        Dialer.running(clock, config.limits, roots=config.roots, egress=config.egress) as dialer,
        server_logins(config, clock, store, dialer, callback) as logins,
    ):
        many_principals = config.http.sole_principal is None
        durable = store if store is not None and store.is_durable else None
        registry = ServerRegistry(
            config.servers,
            operators_are_fixed=many_principals,
            most_added=config.limits.servers_per_principal,
            store=durable,
        )
        budget = EventBudget(config.limits.events_in_all, config.limits.event_bytes_in_all)
        journals = SpanBudget(config.limits.requests_in_all, observers)
        most = ResultBudget(config.limits.result_bytes_in_all, config.limits.result_bytes_per_session)
        large_results = ResultStorage(most, durable)
        scripts = CodeMode(config.limits, ToolsForScripts(served_tools(config))) if config.has_codemode else None
        structured_notices, asks_natively = _manners(config)
        parts = SessionParts(
            registry=registry,
            scripts=scripts,
            dialer=dialer,
            clock=clock,
            limits=config.limits,
            budget=budget,
            journals=journals,
            results=ResultBudget(config.limits.task_bytes_in_all, config.limits.task_bytes_per_session),
            sealing=Sealing(durable),
            large_results=large_results,
            logins=logins,
            structured_notices=structured_notices,
            asks_natively=asks_natively,
            vectors=_vectors(config),
        )
        try:
            yield parts
        finally:
            if scripts is not None:
                await scripts.close()


def served_tools(config: Config) -> list[Tool]:
    """The tools as this configuration has them."""
    tools = [tool for tool in TOOLS if config.has_codemode or tool.name not in CODE_MODE]
    return fit_tools(tools, config.limits)


def _manners(config: Config) -> tuple[bool, bool]:
    """Whether notices are in structured content, too, and whether callers are asked by their own means."""
    return config.notices == "all", config.native_elicitation == "auto"


@asynccontextmanager
async def observing(
    config: Config, clock: Clock, figures: RequestFigures | None = None
) -> AsyncIterator[tuple[SpanObserver, ...]]:
    """Who wants to know of every request. Raises: OSError."""
    counting = () if figures is None else (figures,)
    if config.telemetry.audit_log is None:
        yield counting
        return
    from emceepee.telemetry.audit_log import AuditLog

    audit = AuditLog(config.telemetry.audit_log, clock, with_arguments=config.telemetry.audit_arguments)
    try:
        yield (*counting, audit)
    finally:
        await asyncio.to_thread(audit.close)


def _vectors(config: Config) -> "SharedVectors | None":
    if config.search_vectors is None:
        return None
    from emceepee.sessions.entry_search import SharedVectors

    return SharedVectors(config.search_vectors)


@asynccontextmanager
async def open_session(session_id: str, principal: str, parts: SessionParts) -> AsyncIterator[Session]:
    session = Session(session_id, principal, parts)
    await session.open()
    try:
        yield session
    finally:
        await session.close()


@asynccontextmanager
async def stdio_session(config: Config, store: Store, parts: SessionParts) -> AsyncIterator[Session]:
    """The one session of a process: a new one, or the one of that name, as it was left. Raises: HeldElsewhere."""
    if config.session_name is None:
        session_id = Ulids(lambda: milliseconds(parts.clock.now())).new()
        async with open_session(session_id, LOCAL, parts) as session:
            yield session
        return
    key = SessionKey(LOCAL, KeyKind.NAME, config.session_name)
    await store.take(key)  # the directory would begin another one of that name
    directory = SessionDirectory(parts, SessionStorage(store, parts.clock))
    try:
        yield await directory.find_or_open(key)
    finally:
        await directory.close_all()


def shared_changes(store: Store, parts: SessionParts, logins: Logins | None = None) -> SharedChanges | None:
    if not store.is_durable:
        return None
    changes = SharedChanges(store, parts.clock)
    changes.watch(parts.registry.reload)
    if parts.logins is not None:
        changes.watch(parts.logins.reload)
    if logins is not None:
        changes.watch(logins.reload)
    return changes


async def run_stdio(
    config: Config, *, stdin: int, stdout: int, invite: Invite, source: ConfigSource | None = None
) -> None:
    """`emceepee`: one caller on standard input and output, and a console beside it if one is wanted."""
    use_surface(config.surface)
    clock = SystemClock()
    async with (
        open_store(config, clock) as store,
        observing(config, clock) as observers,
        session_parts(config, clock, store, observers=observers) as parts,
        follow_changes(shared_changes(store, parts)),
        stdio_session(config, store, parts) as session,
    ):
        session.update_profile(transport="stdio")
        tools = served_tools(config)
        sdk_server = build_sdk_server(tools, servers=config.servers, takes_handles=False)

        def take_over(config: Config) -> None:
            name_servers(sdk_server, config.servers)
            session.structured_notices, session.asks_natively = _manners(config)

        async with (
            console_beside(session, config, parts, invite) as open_console,
            follow_file(source, lambda source: Reloader(source, config, parts.registry, clock, take_over)),
        ):
            await serve_stdio(
                sdk_server,
                Tools(tools, config.surface),
                session,
                stdin=stdin,
                stdout=stdout,
                longest_line=config.limits.line_bytes,
                on_first_answer=open_console,
            )


@asynccontextmanager
async def console_beside(
    session: Session, config: Config, parts: SessionParts, invite: Invite
) -> AsyncIterator[Callable[[], None] | None]:
    """Yields what opens the console, if one is wanted: it listens once the caller was answered, and delays nobody."""
    if config.console_port is None:
        yield None
        return
    directory = SessionDirectory(parts)
    directory.adopt(session)
    try:
        async with console_of(directory, config, parts, invite) as open_console:
            yield open_console
    finally:
        directory.release(session)
        await directory.close_all()


@asynccontextmanager
async def console_of(
    directory: SessionDirectory, config: Config, parts: SessionParts, invite: Invite
) -> AsyncIterator[Callable[[], None]]:
    """Yields what opens the console, on loopback, for the sessions of `directory`."""
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


async def run_http(
    config: Config, *, announce: Callable[[str], object], invite: Invite | None, source: ConfigSource | None = None
) -> None:
    """`emceepee serve`: any number of callers at /mcp. `announce` is told the address once it is open.

    Without `invite`, nobody is told where the console is.
    """
    use_surface(config.surface)  # what happens by itself is told in words for it
    clock, callback = SystemClock(), FixedCallback()
    figures = RequestFigures(spec.name for spec in config.servers) if config.telemetry.wants_metrics else None
    async with (
        listen_for_replicas(config, clock) as replication,
        open_store(config, clock, address=replication.address) as store,
        observing(config, clock, figures) as observers,
        session_parts(config, clock, store, callback, observers) as parts,
        replication.joined(store) as replicas,
    ):
        seconds = SHORT_LOGIN_SECONDS if config.http.oauth_issuer else LOGIN_SECONDS
        kept = store if store.is_durable else None
        logins = Logins(clock, seconds=seconds, store=kept) if config.http.has_console else None
        placement = None if replicas is None else replicas.placement
        storage = SessionStorage(store, clock, placement, config.limits) if kept is not None else None
        directory = SessionDirectory(parts, storage)
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
            callback.url = (config.http.public_url or reachable(address)).rstrip("/") + CALLBACK_PATH
            announce(address)
            if logins is not None and invite is not None:
                await welcome(address, config.http, logins, invite)

        def take_over(config: Config) -> None:
            name_servers(made.sdk_server, config.servers)
            directory.set_manners(*_manners(config))

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


def metrics_of(figures: RequestFigures, directory: SessionDirectory, parts: SessionParts, store: Store) -> Metrics:
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
    """Look after the figures that have to be, and serve them at an address of their own, if they have one."""
    if metrics is None:
        yield
        return
    with metrics.following():
        if (listen := config.telemetry.metrics_listen) is None:
            yield
            return
        host, port = listen
        app = MetricsApp(metrics, Gate(gate_rules(replace(config.http, host=host)), parts.oauth))
        async with metrics_listener(app, host, port, config.limits, lambda url: log.info("metrics_listen", url=url)):
            yield


async def welcome(address: str, http: HttpConfig, logins: Logins, invite: Invite) -> None:
    """Say where the console is: with a link that lets the only one in whom it can be for, else to log in there."""
    address = reachable(address)
    if http.sole_principal is None:
        invite(f"{address}{LOGIN_PATH}")
        return
    logins.codes.on_code = lambda code: invite(f"{address}{LOGIN_PATH}?code={code}")
    await logins.codes.invite(http.sole_principal)


def reachable(address: str) -> str:
    """For a browser here. Some addresses name no machine that it could ask."""
    return address.replace("//0.0.0.0", "//127.0.0.1").replace("//[::]", "//[::1]")


def gate_rules(http: HttpConfig, *, only_logins: bool = False) -> GateRules:
    return GateRules(
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
    """With `logins`, there is a console, which shows what `peers` have, too."""
    http, limits = config.http, config.limits
    oauth = None
    if http.oauth_issuer and http.oauth_resource:
        oauth = OAuthCheck(
            http.oauth_issuer,
            resource=http.oauth_resource,
            scopes=http.oauth_scopes,
            clock=clock,
            egress=config.egress,
        )
    gate = Gate(gate_rules(http, only_logins=only_logins), oauth, logins, LoginThrottle(clock))
    tools = served_tools(config)
    return HttpParts(
        sdk_server=build_sdk_server(tools, servers=config.servers),
        tools=Tools(tools, config.surface),
        directory=directory,
        gate=gate,
        policy=AddServerPolicy(
            remote_commands=http.allow_commands, asks_for_proof=http.asks_for_proof, urls=http.allow_urls
        ),
        oauth=oauth,
        requires_session=http.require_session,
        body_bytes=limits.request_body_bytes,
        fallback=ConsoleApp(gate, logins, ConsoleApi(directory, clock, config.limits, peers), Assets(package_files()))
        if logins
        else None,
    )
