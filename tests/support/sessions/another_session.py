"""A second session beside a scene's own: the same registry, backends and clock."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from emceepee.sessions.session import Session
from support.sessions.scene import Scene
from support.sessions.session_parts import session_parts


@asynccontextmanager
async def another_session(scene: Scene, principal: str = "local") -> AsyncIterator[Session]:
    """Open, and not yet woken."""
    first = scene.parts
    parts = session_parts(first.registry, first.dialer, first.clock, first.limits)
    session = Session("01ANOTHERSESSION0000000000", principal, parts)
    await session.open()
    try:
        yield session
    finally:
        await session.close()
