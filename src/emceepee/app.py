"""The composition root: what emceepee is made of. The nesting is the order in which things close."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from emceepee.backends.dialer import Dialer
from emceepee.clock import Clock, SystemClock, milliseconds
from emceepee.config import Config
from emceepee.ids import Ulids
from emceepee.server.kernel import build_kernel
from emceepee.server.stdio_endpoint import serve_stdio
from emceepee.sessions.persistence import StoredServers
from emceepee.sessions.registry import ServerRegistry
from emceepee.sessions.session import Session, SessionParts
from emceepee.state.events import EventBudget
from emceepee.store.memory import MemoryServers

LOCAL_PRINCIPAL = "local"


@asynccontextmanager
async def session_parts(config: Config, clock: Clock) -> AsyncIterator[SessionParts]:
    async with Dialer.running(clock, longest_line=config.limits.line_bytes, roots=config.roots) as dialer:
        registry = ServerRegistry(config.servers, StoredServers(MemoryServers()))
        budget = EventBudget(config.limits.events_in_all)
        yield SessionParts(registry=registry, dialer=dialer, clock=clock, limits=config.limits, budget=budget)


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
    async with session_parts(config, clock) as parts, open_session(session_id, LOCAL_PRINCIPAL, parts) as session:
        longest = config.limits.line_bytes
        await serve_stdio(build_kernel(), session, stdin=stdin, stdout=stdout, longest_line=longest)
