"""Reading a body: whole or as a stream, at the pace of the reader, or not at all."""

import asyncio
import zlib

import pytest

from emceepee.backends.http1.http_failures import HttpFailure, ResponseTooLarge
from emceepee.backends.http1.response import UNREAD_BYTES, HttpResponse
from support.fakes.connection import FakeConnection

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)


async def begun(line: FakeConnection, head: bytes = CHUNKED) -> HttpResponse:
    response = line.ask()
    line.hear(head)
    await response.wait_for_head()
    return response


async def all_of(response: HttpResponse) -> list[bytes]:
    chunks = []
    async with asyncio.timeout(5):
        while piece := await response.readany():
            chunks.append(piece)
    return chunks


async def test_a_response_stream_delivers_data_as_it_arrives() -> None:
    line = FakeConnection()
    response = await begun(line)
    reading = asyncio.ensure_future(response.readany())
    await asyncio.sleep(0)
    line.hear(b"5\r\nhe")
    assert await reading == b"he"
    line.hear(b"llo\r\n", chunk(b"world"))
    assert await response.readany() == b"lloworld"
    line.hear(END)
    assert await response.readany() == b""
    assert await response.readany() == b""
    assert line.is_kept


async def test_chunk_framing_alone_does_not_wake_the_reader() -> None:
    line = FakeConnection()
    response = await begun(line)
    reading = asyncio.ensure_future(response.readany())
    for piece in (b"5", b"\r\n"):
        await asyncio.sleep(0)
        line.hear(piece)
        await asyncio.sleep(0)
        assert not reading.done()
    line.hear(b"hello")
    assert await reading == b"hello"


async def test_data_before_a_disconnect_is_delivered_before_the_disconnect_is_reported() -> None:
    line = FakeConnection()
    response = line.ask()
    line.hear(CHUNKED + chunk(b"hello"))
    line.hang_up(ConnectionResetError(104, "Connection reset by peer"))
    await response.wait_for_head()
    assert await response.readany() == b"hello"
    with pytest.raises(HttpFailure, match="during the answer: Connection reset by peer"):
        await response.readany()


async def test_the_rest_of_a_response_stream_can_be_read_at_once() -> None:
    line = FakeConnection()
    response = await begun(line)
    line.hear(chunk(b"hello"))
    assert await response.readany() == b"hello"
    line.hear(chunk(b"wor"), chunk(b"ld"), END)
    assert await response.read(100) == b"world"


# Slow readers.


async def test_a_server_is_paused_for_a_slow_reader_and_resumed_afterward() -> None:
    line = FakeConnection()
    response = await begun(line)
    line.hear(chunk(b"x" * UNREAD_BYTES))
    assert line.may_send()
    line.hear(chunk(b"y"))
    assert not line.may_send()
    assert len(await response.readany()) == UNREAD_BYTES + 1
    reading = asyncio.ensure_future(response.readany())
    await asyncio.sleep(0)
    assert line.may_send()
    line.hear(chunk(b"z"))
    assert await reading == b"z"


async def test_reading_a_whole_body_never_pauses_the_server() -> None:
    line = FakeConnection()
    response = await begun(line)
    line.hear(chunk(b"x" * UNREAD_BYTES + b"x"))
    assert not line.may_send()
    reading = asyncio.ensure_future(response.read(1 << 30))
    await asyncio.sleep(0)
    for _ in range(3):
        assert line.may_send()
        line.hear(chunk(b"x" * UNREAD_BYTES))
    line.hear(END)
    assert len(await reading) == 4 * UNREAD_BYTES + 1


async def test_a_finished_connection_resumes_reading_before_it_becomes_idle() -> None:
    """The body ended in the chunk that paused reading; an idle connection must read to notice its end."""
    line = FakeConnection()
    response = await begun(line)
    line.hear(chunk(b"x" * UNREAD_BYTES + b"x"))
    line.hear(END)
    assert line.is_kept
    assert line.may_send()
    assert len(await response.read(1 << 30)) == UNREAD_BYTES + 1


# Oversized bodies.


async def test_a_body_may_be_as_large_as_its_limit_and_no_larger() -> None:
    for size in (99, 100):
        line = FakeConnection()
        response = await begun(line, OK + b"content-length: %d\r\n\r\n" % size + b"x" * size)
        assert await response.read(100) == b"x" * size
    line = FakeConnection()
    response = await begun(line, OK + b"content-length: 101\r\n\r\n" + b"x" * 101)
    with pytest.raises(ResponseTooLarge, match="the answer is larger than 100 bytes"):
        await response.read(100)


async def test_a_body_that_announces_too_large_a_size_is_not_read() -> None:
    line = FakeConnection()
    response = await begun(line, OK + b"content-length: 101\r\n\r\n")
    with pytest.raises(ResponseTooLarge):
        await response.read(100)
    assert line.transport.is_closing()


async def test_a_body_that_grows_beyond_its_limit_closes_the_connection_at_once() -> None:
    line = FakeConnection()
    response = await begun(line)
    reading = asyncio.ensure_future(response.read(100))
    await asyncio.sleep(0)
    line.hear(chunk(b"x" * 100))
    assert not line.transport.is_closing()
    line.hear(chunk(b"x"))
    assert line.transport.is_closing()
    with pytest.raises(ResponseTooLarge):
        await reading


async def test_a_body_that_exceeded_its_limit_before_the_read_is_rejected() -> None:
    line = FakeConnection()
    response = await begun(line)
    line.hear(chunk(b"x" * 101))
    with pytest.raises(ResponseTooLarge):
        await response.read(100)
    assert line.transport.is_closing()


# Discarded bodies.


async def test_a_closed_response_closes_its_connection() -> None:
    line = FakeConnection()
    response = await begun(line)
    line.hear(chunk(b"hello"))
    response.close()
    response.close()
    assert line.transport.is_closing()
    line.hang_up()
    with pytest.raises(HttpFailure, match="closed before its end"):
        await response.read(100)


async def test_closing_a_response_wakes_its_reader() -> None:
    line = FakeConnection()
    response = await begun(line)
    reading = asyncio.ensure_future(response.readany())
    await asyncio.sleep(0)
    response.close()
    with pytest.raises(HttpFailure, match="closed before its end"):
        await reading


async def test_closing_a_complete_response_leaves_its_connection_open() -> None:
    line = FakeConnection()
    response = await begun(line, OK + b"content-length: 5\r\n\r\nhello")
    response.close()
    assert line.is_kept


async def test_a_discarded_response_is_drained_and_its_connection_becomes_reusable() -> None:
    line = FakeConnection()
    response = await begun(line)
    line.hear(chunk(b"x" * UNREAD_BYTES), chunk(b"x"))
    response.discard()
    for _ in range(3):
        line.hear(chunk(b"x" * UNREAD_BYTES))
        assert response.parts == []
        assert line.may_send()
    line.hear(END)
    assert line.is_kept
    await line.clock.advance(10)
    assert line.is_kept


async def test_a_discarded_response_that_does_not_end_is_closed_after_a_timeout() -> None:
    line = FakeConnection()
    response = await begun(line)
    response.discard()
    await line.clock.advance(4)
    line.hear(chunk(b"x"))
    assert not line.transport.is_closing()
    await line.clock.advance(2)
    assert line.transport.is_closing()


async def test_discarding_a_complete_response_changes_nothing() -> None:
    line = FakeConnection()
    response = await begun(line, OK + b"content-length: 5\r\n\r\nhello")
    response.discard()
    await line.clock.advance(10)
    assert line.is_kept
    assert await response.read(100) == b"hello"


# Bodies that are compressed without a request for it.


async def compressed(line: FakeConnection, coding: str, data: bytes, *, cut: int = 1 << 20) -> HttpResponse:
    response = await begun(line, CHUNKED.replace(b"\r\n\r\n", f"\r\ncontent-encoding: {coding}\r\n\r\n".encode()))
    for place in range(0, len(data), cut):
        line.hear(chunk(data[place : place + cut]))
    line.hear(END)
    return response


def gzip(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("cut", [1, 7, 1000])
async def test_a_compressed_body_is_read_whole(cut: int) -> None:
    response = await compressed(FakeConnection(), "GZIP", gzip(b"hello" * 50), cut=cut)
    assert await response.read(1000) == b"hello" * 50


async def test_a_compressed_stream_delivers_data_as_it_arrives() -> None:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    line = FakeConnection()
    response = await begun(line, OK + b"content-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n")
    for words in (b"data: a\n\n", b"data: b\n\n"):
        reading = asyncio.ensure_future(response.readany())
        await asyncio.sleep(0)
        line.hear(chunk(packer.compress(words) + packer.flush(zlib.Z_SYNC_FLUSH)))
        assert await reading == words
    line.hear(chunk(packer.flush()), END)
    assert await response.readany() == b""


async def test_a_decompression_bomb_is_rejected_when_it_exceeds_the_read_limit() -> None:
    bomb = gzip(bytes(64 << 20))
    with pytest.raises(ResponseTooLarge):
        await (await compressed(FakeConnection(), "gzip", bomb)).read(1 << 20)


async def test_a_huge_compressed_stream_is_delivered_in_bounded_pieces() -> None:
    bomb = gzip(bytes(3 << 20))
    pieces = await all_of(await compressed(FakeConnection(), "gzip", bomb))
    assert max(map(len, pieces)) == UNREAD_BYTES
    assert b"".join(pieces) == bytes(3 << 20)


@pytest.mark.parametrize("reads_whole", [True, False])
async def test_a_truncated_compressed_body_raises_an_error(reads_whole: bool) -> None:
    response = await compressed(FakeConnection(), "gzip", gzip(b"hello" * 50)[:-4])
    with pytest.raises(HttpFailure, match="cut off"):
        await (response.read(1000) if reads_whole else all_of(response))


async def test_a_damaged_compressed_stream_closes_its_connection() -> None:
    line = FakeConnection()
    response = await begun(line, OK + b"content-encoding: gzip\r\ntransfer-encoding: chunked\r\n\r\n")
    line.hear(chunk(b"\x1f\x8b" + b"x" * 20))
    with pytest.raises(HttpFailure, match="damaged"):
        await response.readany()
    assert line.transport.is_closing()


async def test_a_body_with_identity_encoding_is_read_as_it_is() -> None:
    assert await (await compressed(FakeConnection(), "identity", b"hello")).read(100) == b"hello"


async def test_a_cancelled_reader_closes_its_connection() -> None:
    line = FakeConnection()
    response = await begun(line)
    reading = asyncio.ensure_future(response.readany())
    await asyncio.sleep(0)
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading
    assert line.transport.is_closing()
