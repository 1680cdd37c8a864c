"""Everything here runs on the loop that emceepee uses and on the one it falls back to."""

from support.system.event_loops import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
