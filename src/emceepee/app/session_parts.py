"""The composition root of every emceepee process. The nesting of contexts defines the shutdown order.

`stdio_app` and `http_app` build on it. They are separate so that a process loads only the one it needs.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from emceepee.backends.dialer import Dialer
from emceepee.clock import Clock
from emceepee.codemode.engine import CodeMode
from emceepee.config.settings import Config
from emceepee.guard.policy import is_listed
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.paths import KEYRING
from emceepee.sessions.logins.server_logins import FixedCallback, ServerLogins
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.results.result_budget import ResultBudget
from emceepee.sessions.results.stored_results import ResultStorage
from emceepee.sessions.sealing_key import Sealing
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.sessions.session import Session
from emceepee.state.events import EventBudget
from emceepee.state.notice_options import NoticeOptions
from emceepee.store.memory_store import MemoryStore
from emceepee.store.placed_secrets import PlacedSecrets
from emceepee.store.platform_keyring import PlatformKeyring
from emceepee.store.shared_changes import SharedChanges
from emceepee.store.store import Store
from emceepee.telemetry.journal import NO_OBSERVERS, Observers, SpanBudget
from emceepee.tools.catalogue import CODE_MODE, TOOLS
from emceepee.tools.declaration.argument_limits import fit_tools
from emceepee.tools.declaration.declaration import Tool
from emceepee.tools.tools_for_scripts import ToolsForScripts
from emceepee.web.callback import CLIENT_PATH, CallbackOutcome, LoopbackCallback

EVENT_BYTES_IN_ALL = 64 << 20  # of all sessions together

if TYPE_CHECKING:
    from emceepee.guard.logins import Logins
    from emceepee.sessions.lists.entry_search import SharedVectors
    from emceepee.telemetry.audit_log import AuditLog
    from emceepee.telemetry.otel.otlp_export import Export
    from emceepee.telemetry.request_metrics import RequestMetrics

Invite = Callable[[str], object]  # called with the link to the console


@asynccontextmanager
async def open_store(config: Config, clock: Clock, *, address: str = "") -> AsyncIterator[Store]:
    """Open the configured store. `address` is where other replicas reach this process. Raises: StoreUnusable."""
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


# Each store engine is imported only if the configuration uses it.


async def _open_sqlite(config: Config, clock: Clock, address: str) -> Store:
    from emceepee.store.sqlite.sqlite_store import SqliteStore

    location = config.location
    assert location.path is not None  # checked by the caller
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
    assert location.redis is not None  # checked by the caller
    return await RedisStore.open(
        location.redis,
        clock,
        key=location.key,
        address=address,
        slot=config.replicas.slot,
        lease_seconds=config.limits.replica_lease_seconds,
    )


@asynccontextmanager
async def follow_changes(changes: SharedChanges | None) -> AsyncIterator[None]:
    """Poll for changes by other processes while inside this context. With None, do nothing."""
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
    callback: FixedCallback | None = None,
    *,
    chosen_address: str | None = None,
) -> AsyncIterator[ServerLogins]:
    """Open the logins for servers.

    Browsers return to `callback`, or to a loopback port that opens for the first login. `chosen_address` is the address
    that browsers are sent to instead of that port.
    """
    public = config.http.public_url if isinstance(callback, FixedCallback) else None
    document = f"{public.rstrip('/')}{CLIENT_PATH}" if public and public.startswith("https://") else None

    async def receive(target: str) -> CallbackOutcome:
        return await logins.receive(target)

    loopback = LoopbackCallback(receive, chosen_address)  # opens no port before the first login
    secrets = PlacedSecrets(store or MemoryStore(), PlatformKeyring(clock), is_preferred=config.secrets == KEYRING)
    has_many_users = public is not None and config.http.sole_principal is None
    logins = ServerLogins(
        secrets,
        dialer,
        clock,
        callback or loopback,
        client_metadata_url=document,
        public_url=public if has_many_users else None,
    )
    try:
        yield logins
    finally:
        await logins.close()
        await loopback.close()


@asynccontextmanager
async def session_parts(
    config: Config,
    clock: Clock,
    store: Store | None = None,
    callback: FixedCallback | None = None,
    observers: Observers = NO_OBSERVERS,
    *,
    has_replicas: Callable[[], bool] = lambda: False,
) -> AsyncIterator[SessionParts]:
    """Open the parts that all sessions share. `has_replicas` returns whether other replicas follow the file."""
    async with (
        Dialer.running(
            clock,
            config.limits,
            roots=config.roots,
            egress=config.egress,
            observer=observers.links,
            is_listed=lambda url: is_listed(url, config.http.allow_urls),
        ) as dialer,
        server_logins(config, clock, store, dialer, callback) as logins,
    ):
        many_principals = config.http.sole_principal is None
        durable = store if store is not None and store.is_durable else None
        registry = ServerRegistry(
            config.servers,
            operators_are_fixed=many_principals,
            store=durable,
            has_replicas=has_replicas,
        )
        registry.set_disabled(config.disabled)
        registry.problem = config.general_problem
        budget = EventBudget(config.limits.events_in_all, EVENT_BYTES_IN_ALL)
        journals = SpanBudget(config.limits.requests_in_all, observers.requests)
        most = ResultBudget(config.limits.result_bytes_in_all, config.limits.result_bytes_per_session)
        large_results = ResultStorage(most, durable)
        scripts = CodeMode(config.limits, ToolsForScripts(served_tools(config))) if config.has_codemode else None
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
            notice_options=notice_options(config),
            vectors=_vectors(config),
        )
        try:
            yield parts
        finally:
            if scripts is not None:
                await scripts.close()


def served_tools(config: Config) -> list[Tool]:
    """Return the tools that this configuration enables."""
    tools = [tool for tool in TOOLS if config.has_codemode or tool.name not in CODE_MODE]
    return fit_tools(tools, config.limits)


def notice_options(config: Config) -> NoticeOptions:
    return NoticeOptions(
        structured={"all": True, "blocks": False}.get(config.notices),
        asks_natively=config.native_elicitation != "never",
        trusts_dismissals=config.native_elicitation == "always",
    )


@asynccontextmanager
async def observing(config: Config, clock: Clock, figures: "RequestMetrics | None" = None) -> AsyncIterator[Observers]:
    """Yield the observers of all requests: metrics, audit log, and telemetry, as configured. Raises: OSError."""
    counting = () if figures is None else (figures,)
    async with audit_log(config, clock) as audits, otel_export(config, clock) as export:
        if export is None:
            yield Observers((*counting, *audits))
        else:
            yield Observers((*counting, *audits, export.requests), export.links)


@asynccontextmanager
async def audit_log(config: Config, clock: Clock) -> "AsyncIterator[tuple[AuditLog, ...]]":
    """Yield the audit log in a tuple, which is empty if none is configured. Raises: OSError."""
    if config.telemetry.audit_log is None:
        yield ()
        return
    from emceepee.telemetry.audit_log import AuditLog

    audit = AuditLog(config.telemetry.audit_log, clock, with_arguments=config.telemetry.audit_arguments)
    try:
        yield (audit,)
    finally:
        await asyncio.to_thread(audit.close)


@asynccontextmanager
async def otel_export(config: Config, clock: Clock) -> "AsyncIterator[Export | None]":
    if not config.telemetry.otel:
        yield None
        return
    from emceepee.telemetry.otel.otlp_export import Export, library_logs

    with library_logs(clock):
        export = Export(clock)
        try:
            yield export
        finally:
            await export.close()


def _vectors(config: Config) -> "SharedVectors | None":
    if config.search_vectors is None:
        return None
    from emceepee.sessions.lists.entry_search import SharedVectors

    return SharedVectors(config.search_vectors)


@asynccontextmanager
async def open_session(session_id: str, principal: str, parts: SessionParts) -> AsyncIterator[Session]:
    session = Session(session_id, principal, parts)
    await session.open()
    try:
        yield session
    finally:
        await session.close()


def shared_changes(store: Store, parts: SessionParts, logins: "Logins | None" = None) -> SharedChanges | None:
    if not store.is_durable:
        return None
    watchers = [parts.registry.reload]
    watchers += [each.reload for each in (parts.logins, logins) if each is not None]
    return SharedChanges(store, parts.clock, watchers, has_unsaved=lambda: parts.registry.has_any_unsaved)
