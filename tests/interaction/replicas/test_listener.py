"""The hop listener serves other replicas and reveals nothing to any other client."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from emceepee.guard.caller_identity import CallerIdentity
from emceepee.replicas.hop_messages import SETTLE_PATH
from emceepee.replicas.listener import HEADER_ROOM, bind
from emceepee.replicas.signature import SignedMessage, Signer
from emceepee.state.limits import Limits
from support.callers.raw_connection import RawConnection
from support.in_process.hops import BODY_BYTES, KEY, Replicas, post, two_replicas

NOTHING = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"


@pytest.fixture
async def replicas() -> AsyncIterator[Replicas]:
    async with two_replicas(listen=("127.0.0.1", 0)) as running:
        yield running


def ask(replicas: Replicas, data: bytes) -> RawConnection:
    """Somebody who has found the listener."""
    caller = RawConnection(replicas.bound.address)
    replicas.callers.append(caller)
    caller.send(data)
    return caller


def signed(replicas: Replicas, body: bytes = b"{}", *, target: bytes = b"/mcp", number: int = 1) -> bytes:
    message = SignedMessage(b"POST", target, b"host: here\r\n", body)
    at = int(replicas.clock.now().timestamp())
    value = Signer(KEY, "test").sign(
        message, number=number, target=replicas.holder, sender=replicas.holder, at=at, identity=CallerIdentity()
    )
    head = b"POST %b HTTP/1.1\r\nhost: here\r\nemceepee-hop: %b\r\ncontent-length: %d\r\n\r\n"
    return head % (target, value, len(body)) + body


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\nhost: here\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nhost: here\r\n\r\n",
        post(),
        post(b"", target=SETTLE_PATH.decode()),
        post(b"{}", "emceepee-hop: 1 2.9 1.7 0 a.1 0: - " + 64 * "0"),
        post(b"{}", "emceepee-hop: "),
        b"no HTTP\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"x: 1\r\n" * 1000 + b"\r\n",
    ],
)
async def test_the_hop_listener_answers_an_unsigned_request_with_not_found(replicas: Replicas, request_: bytes) -> None:
    assert await ask(replicas, request_).until_closed() == NOTHING
    assert replicas.target.requests == []


async def test_the_hop_listener_serves_a_signed_request_only_once(replicas: Replicas) -> None:
    data = signed(replicas)
    assert await ask(replicas, data).answer() == {}
    assert await ask(replicas, data).until_closed() == NOTHING
    assert len(replicas.target.requests) == 1


async def test_the_hop_listener_rejects_a_request_with_two_signatures(replicas: Replicas) -> None:
    data = signed(replicas)
    line = data[data.index(b"emceepee-hop") : data.index(b"content-length")]
    assert await ask(replicas, data.replace(line, line * 2)).until_closed() == NOTHING


async def test_the_hop_listener_rejects_a_request_with_an_added_header(replicas: Replicas) -> None:
    data = signed(replicas).replace(b"host: here\r\n", b"host: here\r\nmcp-session-id: S-01\r\n")
    assert await ask(replicas, data).until_closed() == NOTHING


async def test_the_hop_listener_rejects_a_body_over_its_limit(replicas: Replicas) -> None:
    data = signed(replicas).replace(b"content-length: 2", b"content-length: %d" % (BODY_BYTES + 1))
    reader, writer = await asyncio.open_connection("127.0.0.1", int(replicas.bound.address.rpartition(":")[2]))
    async with asyncio.timeout(20):
        writer.write(data + b"x" * (BODY_BYTES - 1))
        assert await reader.readexactly(len(NOTHING)) == NOTHING
    writer.close()
    assert replicas.target.requests == []


async def test_any_request_of_a_caller_can_be_forwarded(replicas: Replicas) -> None:
    limits = Limits()
    size = limits.request_head_bytes - 2000
    assert await replicas.post(b'{"a":1}', f"x-large: {'x' * size}").answer() == {"a": 1}
    many = [f"x-{number}: 1" for number in range(limits.request_headers - HEADER_ROOM)]
    assert await replicas.post(b'{"a":1}', *many).answer() == {"a": 1}


def test_an_ipv6_address_is_shown_in_url_notation() -> None:
    with bind(("::1", 0)) as bound:
        assert bound.address.startswith("http://[::1]:")
