"""Real servers that ask questions, as the arguments with which add_server connects them."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.system.ports import free_port

TESTS = Path(__file__).parents[2]
EVERYTHING = TESTS / "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
MODERN, BACK_CHANNEL = "support.server_programs.modern_server", "support.server_programs.back_channel_server"
MODULE_PATH = {"PYTHONPATH": os.pathsep.join(filter(None, (str(TESTS), os.environ.get("PYTHONPATH"))))}
ATTEMPTS = 3  # another program may take the free port before the server does
# Preloaded into the server, which would otherwise listen on every interface.
LOOPBACK_ONLY = (
    "data:text/javascript,import net from 'node:net';"
    "const listen = net.Server.prototype.listen;"
    "net.Server.prototype.listen = function (port, ...rest) { return listen.call(this, port, '127.0.0.1', ...rest); };"
)


@contextmanager
def everything(transport: str) -> Iterator[dict[str, Any]]:
    """The protocol's own example server, over `stdio` or `streamableHttp`."""
    if transport == "stdio":
        yield {"command": "node", "args": [str(EVERYTHING), "stdio"]}
        return
    command = ["node", "--import", LOOPBACK_ONLY, str(EVERYTHING), transport]
    for _ in range(ATTEMPTS):
        port = free_port()
        with _running(command, stderr=subprocess.PIPE, env={"PORT": str(port)}) as process:
            assert process.stderr is not None
            if any(b"listening" in line for line in process.stderr):
                yield {"url": f"http://127.0.0.1:{port}/mcp"}
                return
    raise AssertionError("server-everything did not open its port")


@contextmanager
def modern(transport: str) -> Iterator[dict[str, Any]]:
    """Our own server of the 2026-07-28 era, over `stdio` or `http`."""
    with _python_server(MODERN, transport) as server:
        yield server


@contextmanager
def asking_as_before(transport: str) -> Iterator[dict[str, Any]]:
    """A server of both eras on the SDK, whose tool can ask in the handshake era only."""
    with _python_server(BACK_CHANNEL, transport) as server:
        yield server


@contextmanager
def _python_server(module: str, transport: str) -> Iterator[dict[str, Any]]:
    if transport == "stdio":
        yield {"command": sys.executable, "args": ["-m", module], "env": MODULE_PATH}
        return
    with _running([sys.executable, "-m", module, "http"], stdout=subprocess.PIPE, env=MODULE_PATH) as process:
        assert process.stdout is not None
        yield {"url": f"http://127.0.0.1:{int(process.stdout.readline())}/mcp"}


@contextmanager
def _running(
    command: list[str],
    *,
    env: Mapping[str, str],
    stdout: int = subprocess.DEVNULL,
    stderr: int = subprocess.DEVNULL,
) -> "Iterator[subprocess.Popen[bytes]]":
    with subprocess.Popen(command, env={**os.environ, **env}, stdout=stdout, stderr=stderr) as process:
        try:
            yield process
        finally:
            process.kill()
