"""Real clients time out before emceepee does. One second stands for their default timeout of a minute."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from support.backends.web_backend import WebBackend, a_web_backend
from support.callers.emceepee_process import BOUND, configured
from support.callers.http_process import http_process
from support.server_programs.real_servers import NODE

CLIENTS = {
    "sdk 1": ("impatient_client_1.mjs", ()),
    "client 2": ("impatient_client_2.mjs", ("legacy",)),
    "client 2 in 2026-07-28": ("impatient_client_2.mjs", ("2026-07-28",)),
}


class Client:
    """One run of a client; it says a line when it has given up, and one when it has the result."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def said(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), BOUND)
        found = dict(json.loads(line))
        found["heard"] = [kind for kind in found["heard"] if kind.startswith("task_")]
        return found

    def abort(self) -> None:
        """Its user has waited long enough."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    async def end(self) -> int:
        return await asyncio.wait_for(self._process.wait(), BOUND)


@asynccontextmanager
async def a_client(name: str, how: str, *place: str, env: dict[str, str] | None = None) -> AsyncIterator[Client]:
    program, options = CLIENTS[name]
    process = await asyncio.create_subprocess_exec(
        *("node", str(NODE / program), how, *options, *place),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        env=os.environ | (env or {}),
    )
    try:
        yield Client(process)
    finally:
        if process.returncode is None:
            process.terminate()
            await asyncio.wait_for(process.wait(), BOUND)


@asynccontextmanager
async def a_client_over(transport: str, name: str, how: str, backend: WebBackend) -> AsyncIterator[Client]:
    """A client of an emceepee that has the server "web" and the limits that everyone has."""
    env = configured({"web": {"url": backend.url}})
    if transport == "stdio":
        async with a_client(name, how, sys.executable, "-m", "emceepee", env=env) as client:
            yield client
    else:
        async with http_process(env=env) as endpoint, a_client(name, how, endpoint.url) as client:
            yield client


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_call_is_not_lost_when_its_client_times_out(transport: str, name: str) -> None:
    async with a_web_backend() as backend, a_client_over(transport, name, "timeout", backend) as client:
        call = await backend.next_call()
        gave_up = await client.said()
        assert "timed out" in gave_up["error"]
        assert gave_up["heard"] == ["task_created"]
        assert gave_up["tasks"] == [["working", "wait"]]
        call.finish("kept")
        assert await client.said() == {"said": "kept", "heard": []}  # the reply itself tells that it is completed
        assert await client.end() == 0
        assert not call.was_cancelled.is_set()
        assert len(backend.calls) == 1


@pytest.mark.parametrize("name", ["sdk 1", "client 2"])
@pytest.mark.parametrize("transport", ["stdio", "http"])
async def test_a_call_ends_when_its_user_cancels_it(transport: str, name: str) -> None:
    async with a_web_backend() as backend, a_client_over(transport, name, "abort", backend) as client:
        call = await backend.next_call()
        client.abort()
        gave_up = await client.said()
        assert (gave_up["heard"], gave_up["tasks"]) == ([], [])
        await asyncio.wait_for(call.was_cancelled.wait(), BOUND)
        assert await client.end() == 0
