"""The composition root: what emceepee is made of. The nesting is the order in which things close."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from emceepee.backends.dialer import Dialer
from emceepee.clock import Clock, SystemClock, milliseconds
from emceepee.config import Config
from emceepee.guard.gate import Gate, GateRules
from emceepee.guard.oauth import OAuthCheck
from emceepee.guard.policy import AddServerPolicy
from emceepee.guard.visitor import LOCAL
from emceepee.ids import Ulids
from emceepee.server.http_endpoint import HttpEndpoint, HttpParts
from emceepee.server.http_server import serve_http
from emceepee.server.kernel import build_kernel
from emceepee.server.stdio_endpoint import serve_stdio
from emceepee.sessions.directory import SessionDirectory
from emceepee.sessions.persistence import StoredServers
from emceepee.sessions.registry import ServerRegistry
from emceepee.sessions.session import Session, SessionParts
from emceepee.state.events import EventBudget
from emceepee.store.memory import MemoryServers
from emceepee.telemetry.journal import JournalRoom


@asynccontextmanager
async def session_parts(config: Config, clock: Clock) -> AsyncIterator[SessionParts]:
    async with Dialer.running(clock, longest_line=config.limits.line_bytes, roots=config.roots) as dialer:
        many_principals = len(set(config.http.tokens.values())) > 1 or config.http.oauth_issuer is not None
        shelf = StoredServers(MemoryServers())
        registry = ServerRegistry(config.servers, shelf, operators_are_fixed=many_principals)
        budget = EventBudget(config.limits.events_in_all)
        journals = JournalRoom(config.limits.requests_in_all)
        yield SessionParts(
            registry=registry, dialer=dialer, clock=clock, limits=config.limits, budget=budget, journals=journals
        )


@asynccontextmanager
async def open_session(session_id: str, principal: str, parts: SessionParts) -> AsyncIterator[Session]:
    session = Session(session_id, principal, parts)
    await session.open()
    try:
        yield session
    finally:
        await session.close()


async def run_stdio(config: Config, *, stdin: int, stdout: int) -> None:
    """`emceepee`: one caller on standard input and output."""
    clock = SystemClock()
    session_id = Ulids(lambda: milliseconds(clock.now())).new()
    async with session_parts(config, clock) as parts, open_session(session_id, LOCAL, parts) as session:
        longest = config.limits.line_bytes
        await serve_stdio(build_kernel(), session, stdin=stdin, stdout=stdout, longest_line=longest)


async def run_http(config: Config, *, announce: Callable[[str], None]) -> None:
    """`emceepee serve`: any number of callers at /mcp. `announce` is told the address once it is open."""
    clock = SystemClock()
    async with session_parts(config, clock) as parts:
        endpoint = HttpEndpoint(http_parts(config, SessionDirectory(parts), clock))
        try:
            await serve_http(endpoint, host=config.http.host, port=config.http.port, announce=announce)
        finally:
            await endpoint.close()
            await endpoint.directory.close_all()


def http_parts(config: Config, directory: SessionDirectory, clock: Clock) -> HttpParts:
    http = config.http
    oauth = None
    if http.oauth_issuer and http.oauth_resource:
        oauth = OAuthCheck(http.oauth_issuer, resource=http.oauth_resource, scopes=http.oauth_scopes, clock=clock)
    rules = GateRules(
        tokens=http.tokens,
        hosts=frozenset(http.allow_hosts),
        origins=frozenset(http.allow_origins),
        any_host=http.asks_for_proof and not http.is_loopback and not http.allow_hosts,
        any_address=not http.is_loopback,
    )
    return HttpParts(
        kernel=build_kernel(),
        directory=directory,
        gate=Gate(rules, oauth),
        policy=AddServerPolicy(remote_commands=http.allow_commands, urls=http.allow_urls),
        oauth=oauth,
        shared_default=http.shared_default,
        body_bytes=config.limits.request_body_bytes,
    )
