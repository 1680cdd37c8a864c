"""A session on the real clock, and an authorization server that one of its backends requires."""

from collections.abc import AsyncIterator

import pytest

from emceepee.app.session_parts import session_parts
from emceepee.clock import SystemClock
from emceepee.config.settings import Config
from emceepee.sessions.parts import SessionParts
from support.sessions.login_scene import a_login_scene
from support.sessions.scene import Scene
from support.system.authorization_server import AuthorizationServer, an_authorization_server


@pytest.fixture
async def server() -> AsyncIterator[AuthorizationServer]:
    async with an_authorization_server() as running:
        yield running
        running.go_on.set()  # a request that still waits would block the shutdown


@pytest.fixture
async def parts() -> AsyncIterator[SessionParts]:
    async with session_parts(Config(), SystemClock()) as made:
        yield made


@pytest.fixture
async def scene(parts: SessionParts) -> AsyncIterator[Scene]:
    async with a_login_scene(parts) as made:
        yield made
