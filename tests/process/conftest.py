"""Servers that several test files use, and a folder for tests with several users."""

import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.server_programs.real_servers import everything_on_a_port
from support.system.authorization_server import AuthorizationServer, an_authorization_server
from support.system.certificates import Authority
from support.system.forward_proxies import ForwardProxy, forward_proxy


@pytest.fixture(scope="session")
def everything_http() -> Iterator[str]:
    """The address of server-everything over Streamable HTTP."""
    with everything_on_a_port("streamableHttp") as port:
        yield f"http://127.0.0.1:{port}/mcp"


@pytest.fixture(scope="session")
def everything_sse() -> Iterator[str]:
    """The address of server-everything over the older SSE transport."""
    with everything_on_a_port("sse") as port:
        yield f"http://127.0.0.1:{port}/sse"


@pytest.fixture
async def server() -> AsyncIterator[AuthorizationServer]:
    """An authorization server, and the server that accepts only its tokens."""
    async with an_authorization_server() as running:
        yield running


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """A certificate authority that no system trusts."""
    return Authority(tmp_path / "tls")


@pytest.fixture
async def beyond() -> AsyncIterator[ForwardProxy]:
    """A proxy that stands for the internet behind the tested proxy."""
    async with forward_proxy() as running:
        yield running


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that every user can look into, as those of pytest are not; and the usual mask for new files."""
    folder, mask = Path(tempfile.mkdtemp(prefix="emceepee-")), os.umask(0o022)
    folder.chmod(0o755)
    yield folder
    os.umask(mask)
    shutil.rmtree(folder)
