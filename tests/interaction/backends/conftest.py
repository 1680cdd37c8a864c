"""Fixtures for the tests of links and of the HTTP client: a raw server on loopback, a fake clock, a dialer."""

from collections.abc import AsyncIterator

import pytest

from support.backends.raw_links import WatchedDialer, a_dialer
from support.backends.raw_server import RawServer, raw_server
from support.fakes.clock import FakeClock


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    async with raw_server() as running:
        yield running


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
async def dialer(clock: FakeClock) -> AsyncIterator[WatchedDialer]:
    async with a_dialer(clock) as running:
        yield running
