"""A second session beside a scene's own: the same registry, backends and clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from emceepee.sessions.results import ResultBudget
from emceepee.sessions.session import Session, SessionParts
from emceepee.state.events import EventBudget
from emceepee.telemetry.journal import SpanBudget
from support.sessions.scene import Scene


@asynccontextmanager
async def another_session(scene: Scene, principal: str = "local") -> AsyncIterator[Session]:
    """Open, and not yet woken."""
    first = scene.session
    parts = SessionParts(
        registry=first._registry,
        dialer=first._dialer,
        clock=first.clock,
        limits=first.limits,
        budget=EventBudget(1000),
        journals=SpanBudget(1000),
        results=ResultBudget(1 << 20, 1 << 20),
    )
    session = Session("01ANOTHERSESSION0000000000", principal, parts)
    await session.open()
    try:
        yield session
    finally:
        await session.close()
