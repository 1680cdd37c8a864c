"""Unauthenticated callers that send endless trailers, chunks, blank lines, or bodies."""

import asyncio
import contextlib
from collections.abc import Iterator

import pytest

from support.callers.http_process import http_process
from support.callers.raw_connection import RawConnection
from support.faults.strain import strain_on
from support.figures import record_figure

MIB = 1 << 20
BLOCK = 1 << 16
FLOOD_BYTES = 100 * MIB
MOST_TAKEN = 48 * MIB  # the largest body in small chunks, as much that is ignored, and what both systems buffer
WAIT_SECONDS = 1.25  # five times what an unrelated request may wait
TOKEN = ("--log-level", "warn", "--token", "secret-of-the-operator")
POST = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
GET = b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
UNBOUNDED = b"Content-Length: 99999999999\r\n\r\n"
FLOODS = {  # the beginning, the repeated part, and the possible statuses
    "one trailer": (CHUNKED + b"0\r\na: ", b"x" * BLOCK, (401, 431)),
    "trailers": (CHUNKED + b"0\r\n", b"a:\r\n" * (BLOCK // 4), (401, 431)),
    "long trailers": (CHUNKED + b"0\r\n", b"a: " + b"x" * (BLOCK - 5) + b"\r\n", (401, 431)),
    "a chunk extension": (CHUNKED + b"1;", b"x" * BLOCK, (401, 431)),
    "chunk extensions": (CHUNKED, (b"1;" + b"x" * 1000 + b"\r\nx\r\n") * 65, (401, 431)),
    "tiny chunks": (CHUNKED, b"1\r\nx\r\n" * (BLOCK // 6), (401, 431)),
    "small chunks": (CHUNKED, b"3\r\nxxx\r\n" * (BLOCK // 8), (401,)),
    "blank lines": (b"", b"\r\n" * (BLOCK // 2), (400,)),
    "a refused body": (POST + UNBOUNDED, b"x" * BLOCK, (401,)),
    "a refused body in chunks": (CHUNKED, b"10000\r\n" + b"x" * BLOCK + b"\r\n", (401,)),
    "a body that nobody asked for": (GET + UNBOUNDED, b"x" * BLOCK, (200,)),
}


async def pour(line: RawConnection, parts: Iterator[bytes]) -> int:
    """Send until all is sent or the peer has closed; return how much it accepted. Nothing is read in between."""
    loop, sent = asyncio.get_running_loop(), 0
    with contextlib.suppress(ConnectionError):
        for part in parts:
            async with asyncio.timeout(30):
                await loop.sock_sendall(line.socket, part)
            sent += len(part)
    return sent


@pytest.mark.parametrize("what", FLOODS)
async def test_an_endless_part_of_a_request_is_rejected_while_it_arrives(what: str) -> None:
    begin, repeated, statuses = FLOODS[what]
    async with http_process(*TOKEN) as endpoint, strain_on(endpoint) as strain:
        line = RawConnection(endpoint.origin)
        sent = await pour(line, iter([begin, *[repeated] * (FLOOD_BYTES // len(repeated))]))
        answer = await line.until_closed() if sent < MOST_TAKEN else b""
        record_figure(f"{what}: {sent / MIB:.1f} MiB taken, answered {answer[:12]!r}")
    assert sent < MOST_TAKEN
    assert answer == b"" or int(answer[9:12]) in statuses, "a caller that goes on sending may lose the answer"
    assert answer.count(b"HTTP/1.1 ") <= 1
    assert strain.longest_wait < WAIT_SECONDS
    strain.check()
