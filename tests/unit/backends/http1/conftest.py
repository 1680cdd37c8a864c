"""Run every test here on uvloop and on the event loop of asyncio."""

from support.system.event_loops import pytest_asyncio_loop_factories

__all__ = ["pytest_asyncio_loop_factories"]
