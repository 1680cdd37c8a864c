"""MCP servers that nobody here wrote: where they are and how they are started."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from support.system.ports import free_port

NODE = Path(__file__).parents[2] / "node"
EVERYTHING = NODE / "node_modules" / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"
TASKS_PYTHON = Path(__file__).parents[3] / ".tools" / "tasks" / "bin" / "python"
BOTH_ERAS_SERVER = Path(__file__).parents[2] / "clients" / "fastmcp_both_eras_server.py"
TASK_SERVER = Path(__file__).parents[2] / "clients" / "fastmcp_task_server.py"
ATTEMPTS = 3  # another program may take the free port before the server does
READY_SECONDS = 20.0


def everything() -> dict[str, Any]:
    """The reference server with everything in it, on stdio."""
    return {"command": "node", "args": [str(EVERYTHING), "stdio"]}


def python_server(name: str, *arguments: str) -> dict[str, Any]:
    """A server installed next to the tests' own Python."""
    return {"command": str(Path(sys.executable).parent / name), "args": list(arguments)}


@contextmanager
def fastmcp_with_tasks(folder: Path, port: int | None = None, redis: str | None = None) -> Iterator[int]:
    """A FastMCP server whose tools run as tasks; see `tests/clients/fastmcp_task_server.py`."""
    with _fastmcp(TASK_SERVER, str(folder), *([redis] if redis else []), port=port) as at:
        yield at


@contextmanager
def fastmcp_of_both_eras() -> Iterator[int]:
    """A FastMCP server that needs both eras; see `tests/clients/fastmcp_both_eras_server.py`."""
    with _fastmcp(BOTH_ERAS_SERVER) as at:
        yield at


@contextmanager
def _fastmcp(program: Path, *arguments: str, port: int | None = None) -> Iterator[int]:
    for _ in range(ATTEMPTS):
        at = port or free_port()
        with subprocess.Popen([str(TASKS_PYTHON), str(program), str(at), *arguments]) as process:
            try:
                if _is_open(at, process):
                    yield at
                    return
            finally:
                process.kill()
    raise AssertionError("the FastMCP server did not open a port")


@contextmanager
def everything_on_a_port(transport: str) -> Iterator[int]:
    """Run server-everything over `streamableHttp` or `sse` on 127.0.0.1. Yield its port once it is open."""
    command = ["node", "--import", str(NODE / "loopback.mjs"), str(EVERYTHING), transport]
    for _ in range(ATTEMPTS):
        port = free_port()
        quiet = subprocess.DEVNULL
        with subprocess.Popen(command, env={**os.environ, "PORT": str(port)}, stdout=quiet, stderr=quiet) as process:
            try:
                if _is_open(port, process):
                    yield port
                    return
            finally:
                process.kill()
    raise AssertionError(f"server-everything did not open a port for {transport}")


def _is_open(port: int, process: "subprocess.Popen[bytes]") -> bool:
    """Wait for the port; False if the process ends first."""
    for _ in range(int(READY_SECONDS / 0.05)):
        with closing(socket.socket()) as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return True
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        return False
    return False
