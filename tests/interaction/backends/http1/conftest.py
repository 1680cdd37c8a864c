"""Every test in this folder runs on the event loop of emceepee and on its fallback."""

from support.system.event_loops import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
