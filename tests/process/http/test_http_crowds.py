"""Many concurrent callers: their cost, and their isolation from each other."""

import asyncio
import itertools
import json
import socket
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from support.backends.web_backend import WebBackend, a_web_backend
from support.callers.http_process import HttpCaller, HttpProcess, http_process, until
from support.figures import record_figure

pytestmark = pytest.mark.asyncio(loop_scope="module")
BATCH = 20  # sessions opened at a time, as a busy host would


@pytest_asyncio.fixture(loop_scope="module")
async def quiet() -> AsyncIterator[HttpProcess]:
    async with http_process("--log-level", "warn") as running:
        yield running


async def many_callers(endpoint: HttpProcess, count: int) -> list[HttpCaller]:
    callers: list[HttpCaller] = []
    while len(callers) < count:
        callers += await asyncio.gather(*(endpoint.caller() for _ in range(min(BATCH, count - len(callers)))))
    return callers


@pytest.mark.alone  # 600 links are ended within the bound of each
@pytest.mark.timeout(180)
async def test_200_sessions_with_three_backends_each_are_open_at_once() -> None:
    async with a_web_backend() as one, a_web_backend() as two, a_web_backend() as three:
        servers = {f"web{number}": {"url": backend.url} for number, backend in enumerate((one, two, three))}
        async with http_process(
            "--log-level", "warn", env={"EMCEEPEE_CONFIG": json.dumps({"mcpServers": servers})}
        ) as endpoint:
            callers = await many_callers(endpoint, 200)

            async def use(number: int, caller: HttpCaller) -> None:
                for server in servers:
                    echo = await caller.call("execute_tool", server=server, tool="echo", args={"n": number})
                    assert echo["content"][0]["text"] == json.dumps({"n": number})

            await asyncio.gather(*(use(number, caller) for number, caller in enumerate(callers)))
            assert [len(backend.sessions) for backend in (one, two, three)] == [200, 200, 200]
            statuses = {
                server["status"]
                for caller in (callers[0], callers[99], callers[199])
                for server in (await caller.value("list_servers"))["servers"]
            }
            assert statuses == {"connected"}
            assert await asyncio.gather(*(caller.end() for caller in callers)) == [200] * 200
            assert [len(backend.sessions) for backend in (one, two, three)] == [0, 0, 0]


async def test_a_stalled_reader_delays_no_other_caller_or_request(
    endpoint: HttpProcess, caller: HttpCaller, backend: WebBackend
) -> None:
    """This holds for other callers and for other requests of its own session."""
    host, _, port = endpoint.origin.removeprefix("http://").partition(":")
    stalled = socket.socket()
    stalled.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    stalled.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(stalled, (host, int(port)))
    headers = "".join(f"{name}: {text}\r\n" for name, text in caller.headers.items())
    call = {"name": "execute_tool", "arguments": {"server": "web", "tool": "wait"}, "_meta": {"progressToken": "s"}}
    body = json.dumps({"jsonrpc": "2.0", "id": "stalled", "method": "tools/call", "params": call})
    request = f"POST /mcp HTTP/1.1\r\nhost: {host}:{port}\r\ncontent-type: application/json\r\n{headers}"
    await loop.sock_sendall(stalled, f"{request}content-length: {len(body)}\r\n\r\n{body}".encode())
    at_backend = await backend.next_call()
    steps = itertools.count(1)
    for _ in range(20):
        first = next(steps)
        at_backend.progress(first, first + 999)  # far more than the line and its buffers hold
    others = await many_callers(endpoint, 4)
    for one in (caller, *others):
        async with asyncio.timeout(10):
            echo = await one.call("execute_tool", server="web", tool="echo", args={"n": 1})
        assert echo["content"][0]["text"] == '{"n": 1}'
    at_backend.finish()
    async with asyncio.timeout(20):
        assert await caller.end() == 200
    stalled.close()
    await asyncio.gather(*(one.end() for one in others))


async def test_1000_idle_sessions_cost_at_most_16_mb(quiet: HttpProcess) -> None:
    await many_callers(quiet, 50)  # what the first ones load stays loaded
    before = await quiet.resident_kb()
    await many_callers(quiet, 1000)
    cost = await quiet.resident_kb() - before
    record_figure(f"1,000 idle sessions cost {cost} kB")
    assert cost <= 16 * 1024  # with what the store knows of each


@pytest.mark.matrix  # thousands of sessions; test_ended_sessions.py has a few
async def test_ended_sessions_leave_nothing_in_memory(quiet: HttpProcess) -> None:
    async def come_and_go() -> None:
        callers = await many_callers(quiet, 200)
        assert set(await asyncio.gather(*(caller.end() for caller in callers))) == {200}

    for _ in range(20):  # until the collector's oldest generation has come round: it levels off after 3,200 sessions
        await come_and_go()
    before = await quiet.resident_kb()
    for _ in range(5):
        await come_and_go()

    async def is_small() -> bool:
        return await quiet.resident_kb() - before <= 2048

    await until(is_small, "memory stays where it was after 1000 sessions came and went")
