"""The proxy that simulates network faults, and the effect of a slow network on emceepee."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from support.backends.counting_http import CountingBackend
from support.callers.recorder import recorded
from support.faults.fault_proxy import FaultProxy, fault_proxy

BOUND = 10.0


@asynccontextmanager
async def an_echo() -> AsyncIterator[FaultProxy]:
    """A proxy in front of a server that sends back what it gets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while chunk := await reader.read(100):
            writer.write(chunk)
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    async with server, asyncio.timeout(BOUND), fault_proxy(server.sockets[0].getsockname()[1]) as proxy:
        yield proxy


@asynccontextmanager
async def connected(proxy: FaultProxy) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def test_the_fault_proxy_forwards_everything_by_default_and_slows_down_on_request() -> None:
    async with an_echo() as proxy, connected(proxy) as (reader, writer):
        writer.write(b"hello")
        assert await reader.readexactly(5) == b"hello"
        proxy.latency = 0.05
        began = asyncio.get_running_loop().time()
        writer.write(b"again")
        assert await reader.readexactly(5) == b"again"
        assert asyncio.get_running_loop().time() - began >= 0.1


async def test_the_fault_proxy_resets_a_connection() -> None:
    async with an_echo() as proxy, connected(proxy) as (reader, writer):
        writer.write(b"hello")
        await reader.readexactly(5)
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            await reader.read()


async def test_the_fault_proxy_cuts_an_answer_after_a_number_of_bytes() -> None:
    async with an_echo() as proxy, connected(proxy) as (reader, writer):
        proxy.cut_answers_after(3)
        writer.write(b"hello")
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(5)


async def test_the_fault_proxy_accepts_everything_and_returns_nothing_in_a_black_hole() -> None:
    async with an_echo() as proxy, connected(proxy) as (reader, writer):
        proxy.is_black_hole = True
        writer.write(b"lost")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reader.read(1), 0.1)
        proxy.heal()
        writer.write(b"found")
        assert await reader.readexactly(5) == b"found"


async def test_the_fault_proxy_reopens_a_refusing_port() -> None:
    async with an_echo() as proxy:
        await proxy.refuse()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", proxy.port)
        await proxy.listen()
        async with connected(proxy) as (reader, writer):
            writer.write(b"hello")
            assert await reader.readexactly(5) == b"hello"


async def test_a_slow_network_makes_calls_slow_and_has_no_other_effect() -> None:
    backend = CountingBackend("legacy")
    await backend.start()
    try:
        async with (
            fault_proxy(backend.port) as proxy,
            recorded({"name": "one", "url": f"http://127.0.0.1:{proxy.port}/mcp"}) as emceepee,
        ):
            await emceepee.text("echo")
            proxy.latency = 0.2
            slow = await emceepee.execute("echo", timeout_ms=50, text="slow", id="slow")
            task_id = slow["structuredContent"]["proxy_task"]["task_id"]
            assert (await emceepee.call("get_task_result", task_id=task_id))["content"][0]["text"] == "slow"
            assert backend.ran["slow"] == 1
            assert "server_disconnected" not in emceepee.types
    finally:
        await backend.stop()
