"""Servers that are started once for all tests."""

from collections.abc import Iterator

import pytest

from support.server_programs.real_servers import everything_on_a_port


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
