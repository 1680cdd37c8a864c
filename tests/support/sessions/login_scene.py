"""A session with servers that want a login, on the real clock, and the browser of the person who logs in."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

import aiohttp

from emceepee.app.session_parts import open_session
from emceepee.sessions.parts import SessionParts
from emceepee.store.memory_store import MemoryStore
from support.fakes.clock import FakeClock
from support.sessions.scene import Scene


class DurableStore(MemoryStore):
    """A store in memory that outlives the parts that use it, as far as logins can tell."""

    is_durable = True


@asynccontextmanager
async def a_login_scene(parts: SessionParts, principal: str = "ann") -> AsyncIterator[Scene]:
    async with open_session(f"session-of-{principal}", principal, parts) as session:
        session.wake()
        yield Scene(session, cast(FakeClock, parts.clock), {})


async def browse(url: str, *, comes_back: bool = True) -> str:
    """Open the address and agree; where the browser ends."""
    async with aiohttp.ClientSession() as browser, browser.get(url, allow_redirects=comes_back) as found:
        assert found.status < 400
        return str(found.url) if comes_back else found.headers["location"]
