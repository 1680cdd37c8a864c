"""Unauthenticated callers that send endless heads, pipeline without reading, or send nothing."""

import asyncio
import contextlib
import io
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
import pytest_asyncio

from support.callers.http_process import HELLO, HttpProcess, http_process
from support.callers.raw_connection import RawConnection
from support.faults.strain import strain_on
from support.figures import record_figure
from support.waiting import eventually

pytestmark = pytest.mark.asyncio(loop_scope="module")
MIB = 1 << 20
TOKEN = ("--log-level", "warn", "--token", "secret-of-the-operator")
GET = b"GET /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\n"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def endpoint() -> AsyncIterator[HttpProcess]:
    """For all tests whose endpoint need not be watched, or have limits of its own."""
    async with http_process(*TOKEN) as running:
        yield running


def limits(**given: float) -> dict[str, str]:
    return {"EMCEEPEE_CONFIG": json.dumps({"limits": given})}


async def pour(line: RawConnection, parts: Iterator[bytes]) -> int:
    """Send until all is sent or the peer has closed; return how much it accepted. Nothing is read in between."""
    loop, sent = asyncio.get_running_loop(), 0
    with contextlib.suppress(ConnectionError):
        for part in parts:
            async with asyncio.timeout(10):
                await loop.sock_sendall(line.socket, part)
            sent += len(part)
    return sent


FLOODS = {
    "headers": lambda: (part for part in [GET] + [b"a:\r\n" * 16384] * 640),
    "one header": lambda: (part for part in [GET + b"a: "] + [b"x" * 65536] * 1264),
    "the address": lambda: (part for part in [b"GET /"] + [b"x" * 65536] * 1360),
}


@pytest.mark.parametrize("what", FLOODS)
async def test_an_endless_request_head_is_rejected_before_it_is_stored(what: str) -> None:
    async with http_process(*TOKEN) as endpoint, strain_on(endpoint) as strain:
        line = RawConnection(endpoint.origin)
        sent = await pour(line, FLOODS[what]())
        answer = await line.until_closed()
        record_figure(f"{what}: {sent / MIB:.1f} MiB taken, answered {answer[:12]!r}")
    strain.check()
    assert answer.startswith(b"HTTP/1.1 431 ") or answer == b"", "a caller that goes on sending may lose the answer"


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (GET + b"a: " + b"x" * 60_000 + b"\r\n\r\n", 401),
        (GET + b"a: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (GET + b"".join(b"a%d:\r\n" % number for number in range(199)) + b"\r\n", 401),
        (GET + b"".join(b"a%d:\r\n" % number for number in range(200)) + b"\r\n", 431),
        (b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 431),
        (b"GET /mcp HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n", 400),
    ],
    ids=["long", "too long", "many", "too many", "a long address", "no head at all"],
)
async def test_a_request_head_over_the_size_limit_gets_an_error_with_the_reason(
    endpoint: HttpProcess, head: bytes, status: int
) -> None:
    line = RawConnection(endpoint.origin)
    await pour(line, iter([head]))
    await eventually(lambda: line.read_some() and b"\r\n\r\n" in line.received, what="an answer")
    assert line.received.startswith(b"HTTP/1.1 %d " % status)
    if status != 401:
        assert b"connection: close" in await line.until_closed()
    line.cut()


async def test_pipelined_requests_of_a_caller_that_reads_no_answers_do_not_pile_up() -> None:
    healthz = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
    async with http_process(*TOKEN) as endpoint, strain_on(endpoint) as strain:
        line = RawConnection(endpoint.origin)
        sent = await pour(line, iter([healthz * 1500] * 340))
        answer = await line.until_closed()
        record_figure(f"{sent / MIB:.1f} MiB sent, {answer.count(b'HTTP/1.1 200')} answers, then closed")
    strain.check()
    assert 1 <= answer.count(b"HTTP/1.1 200") <= 17


async def test_a_few_pipelined_requests_are_answered_in_order(endpoint: HttpProcess) -> None:
    line = RawConnection(endpoint.origin)
    paths = (b"/healthz", b"/nothing", b"/readyz", b"/mcp")
    await pour(line, iter([b"".join(b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path for path in paths)]))
    await eventually(lambda: line.read_some() and line.received.count(b"HTTP/1.1 ") == 4, what="four answers")
    assert [part[:3] for part in line.received.split(b"HTTP/1.1 ")[1:]] == [b"200", b"404", b"200", b"401"]
    line.cut()


SLOW: dict[str, bytes] = {
    "nothing": b"",
    "half a head": b"GET /mcp HTTP/1.1\r\nHost: 127",
    "half a body": (
        b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer secret-of-the-operator\r\n"
        b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    ),
    "half a body without a token": b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100\r\n\r\n{",
    "half a login": (
        b"POST /console/login HTTP/1.1\r\nHost: 127.0.0.1\r\nOrigin: http://127.0.0.1\r\n"
        b"Content-Type: application/x-www-form-urlencoded\r\n"
        b"Content-Length: 100\r\n\r\ntoken="
    ),
    "a request and nothing more": b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
}


async def test_a_stalled_request_is_disconnected() -> None:
    env = limits(request_head_seconds=1, request_body_seconds=1, idle_connection_seconds=1)
    async with http_process(*TOKEN, env=env) as endpoint:
        lines = {what: RawConnection(endpoint.origin) for what in SLOW}
        for what, line in lines.items():
            line.send(SLOW[what])
        answers = {what: (await line.until_closed())[9:12] for what, line in lines.items()}
    assert answers == {
        "nothing": b"",
        "half a head": b"408",
        "half a body": b"408",
        "half a body without a token": b"401",
        "half a login": b"408",
        "a request and nothing more": b"200",
    }


async def test_a_body_that_arrives_byte_by_byte_gets_no_additional_time() -> None:
    async with http_process(*TOKEN, env=limits(request_body_seconds=1)) as endpoint:
        line = RawConnection(endpoint.origin)
        line.send(SLOW["half a body"])
        dripped = 0
        while line.read_some() and not line.received:
            with contextlib.suppress(ConnectionError):
                line.send(b" ")
            dripped += 1
            await asyncio.sleep(0.05)  # this is the attack: a caller that dribbles, while the limit runs on real time
        line.cut()
        assert line.received.startswith(b"HTTP/1.1 408 ")
        assert dripped < 99


async def test_silent_connections_block_no_other_caller() -> None:
    """There are more connections than available descriptors."""
    async with http_process(*TOKEN, env=limits(caller_connections=100)) as endpoint:
        async with strain_on(endpoint) as strain:
            lines = [RawConnection(endpoint.origin) for _ in range(400)]
            await eventually(lambda: strain.descriptors > 90, what="the connections are accepted")
            await eventually(lambda: sum(not line.read_some() for line in lines) >= 300, what="the first are closed")
            for line in lines:
                line.cut()
        strain.check()
        assert strain.descriptors < 200
        assert [line for line in endpoint.log if "too_many_connections" in line] != []
        assert len([line for line in endpoint.log if "too_many_connections" in line]) < 5, (
            "it is reported once, not each time"
        )


async def test_connections_in_use_are_not_closed_for_new_ones_which_get_503() -> None:
    async with http_process("--log-level", "warn", env=limits(caller_connections=3)) as endpoint:
        caller, other = await endpoint.caller(), await endpoint.caller()
        async with caller.get(), other.get():
            waiting = asyncio.create_task(caller.value("await_activity", timeout_ms=3000))
            newcomer = RawConnection(endpoint.origin)

            def is_refused() -> bool:
                """As soon as all are in use; until then it takes the place of one that is not."""
                nonlocal newcomer
                if newcomer.read_some():
                    return False
                is_told = newcomer.received.startswith(b"HTTP/1.1 503 ")
                newcomer.cut()
                newcomer = newcomer if is_told else RawConnection(endpoint.origin)
                return is_told

            await eventually(is_refused, what="a newcomer is refused")
            assert (await waiting)["triggers"] != []


def hello_batch(count: int) -> list[dict[str, Any]]:
    return [
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "await_activity", "arguments": {}}}
        for number in range(count)
    ]


async def test_the_number_of_messages_in_a_batch_is_limited() -> None:
    async with http_process("--log-level", "warn") as endpoint:
        caller = await endpoint.caller("2025-03-26")
        headers = caller.headers | {"content-type": "application/json"}
        body = io.BytesIO(json.dumps(hello_batch(30_000)).encode())
        async with (
            strain_on(endpoint) as strain,
            endpoint.http.post(endpoint.url, data=body, headers=headers) as response,
        ):
            assert response.status == 400
            assert "the limit is 50" in (await response.json())["error"]["message"]
        strain.check()
        pings = [{"jsonrpc": "2.0", "id": number, "method": "ping"} for number in range(50)]
        async with endpoint.http.post(endpoint.url, json=pings, headers=caller.headers) as response:
            assert len(await response.json()) == 50
        assert HELLO["protocolVersion"] != "2025-03-26", "no other version has batches"
