"""A process without standard input, output, or error works normally or reports the reason."""

import asyncio
import itertools
import os
import sys

import aiohttp
import pytest

from support.callers.emceepee_process import BOUND, configured, emceepee
from support.callers.http_process import HttpProcess
from support.server_programs.stdio_entries import stdio_server
from support.system.ports import free_port
from support.waiting import eventually

STDIN, STDOUT, STDERR = 0, 1, 2
SOME = [closed for count in (1, 2, 3) for closed in itertools.combinations((STDIN, STDOUT, STDERR), count)]


def without(closed: tuple[int, ...], *command: str) -> list[str]:
    """The command, by way of a shell that closes these first."""
    return ["/bin/sh", "-c", 'exec "$@" ' + " ".join(f"{number}>&-" for number in closed), "sh", *command]


@pytest.mark.parametrize("closed", SOME, ids=str)
async def test_serve_works_without_standard_descriptors(closed: tuple[int, ...]) -> None:
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *without(closed, sys.executable, "-m", "emceepee", "serve", "--port", str(port)),
        env={**os.environ, **configured({"small": stdio_server()})},
    )
    try:
        async with aiohttp.ClientSession() as http:
            endpoint = HttpProcess(None, f"http://127.0.0.1:{port}/mcp", http)
            await eventually(lambda: answers(endpoint), what="it answers")
            caller = await endpoint.caller()
            result = await caller.call("execute_tool", server="small", tool="echo", args={"text": "hello"})
            assert not result.get("isError"), result
        process.terminate()
        assert await asyncio.wait_for(process.wait(), BOUND) == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def answers(endpoint: HttpProcess) -> bool:
    try:
        async with endpoint.http.get(f"{endpoint.origin}/healthz") as response:
            return response.status == 200
    except aiohttp.ClientError:
        return False


async def test_a_caller_on_pipes_is_served_without_standard_error() -> None:
    env = configured({"small": stdio_server()})
    async with emceepee(env=env, command=tuple(without((STDERR,)))) as caller:
        await caller.initialize()
        result = await caller.call("execute_tool", server="small", tool="echo", args={"text": "hello"})
        assert not result.get("isError"), result
        assert await caller.end() == 0
        assert caller.stdout_garbage == []


@pytest.mark.parametrize("closed", [(STDIN,), (STDOUT,), (STDIN, STDOUT), (STDIN, STDOUT, STDERR)], ids=str)
async def test_a_start_without_standard_input_or_output_ends_with_an_error(closed: tuple[int, ...]) -> None:
    process = await asyncio.create_subprocess_exec(
        *without(closed, sys.executable, "-m", "emceepee"),
        stdin=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    _, heard = await asyncio.wait_for(process.communicate(), BOUND)
    said = "" if STDERR in closed else "emceepee: standard input or output is closed, so no client can connect\n"
    assert (process.returncode, heard.decode()) == (2, said)


@pytest.mark.parametrize("words", [("--config", "/no/such/file"), ("--nonsense",)], ids=str)
async def test_a_configuration_error_has_its_exit_code_even_without_standard_error(words: tuple[str, ...]) -> None:
    process = await asyncio.create_subprocess_exec(
        *without((STDIN, STDOUT, STDERR), sys.executable, "-m", "emceepee", *words)
    )
    assert await asyncio.wait_for(process.wait(), BOUND) == 2
