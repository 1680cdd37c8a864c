"""An attacker between two replicas, without their secret, changes the holder's response: it is rejected."""

import asyncio
import hmac
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from statistics import median
from time import process_time

import pytest

from emceepee.replicas.hop_messages import SHORT_BYTES
from emceepee.replicas.response_frames import HEAD_BYTES
from emceepee.server.http.exchange import HttpRequest
from emceepee.server.http.request_forwarder import ForwardOutcome
from emceepee.web.asgi import STREAM_HEADERS, respond
from support.figures import record_figure
from support.in_process.hops import KEY, Replicas, Serve, post, two_replicas
from support.waiting import eventually

BOUND = 20.0
PROOF = re.compile(rb"emceepee-hop: ([^\r]*)\r\n")
Change = Callable[[bytes], bytes]
AnswerChange = Callable[[bytes], Awaitable[bytes]]


@pytest.fixture
async def replicas() -> AsyncIterator[Replicas]:
    async with two_replicas(listen=("127.0.0.1", 0)) as running:
        yield running


def is_whole(answer: bytes) -> bool:
    head, end, body = answer.partition(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head)
    return bool(end) and (len(body) >= int(length[1]) if length else body.endswith(b"0\r\n\r\n"))


@asynccontextmanager
async def somebody_between(replicas: Replicas, change: AnswerChange) -> AsyncIterator[None]:
    """Passes requests on as they are, and of each answer what is made of it. Hangs up then."""
    port = int(replicas.bound.address.rpartition(":")[2])

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        holder, to_holder = await asyncio.open_connection("127.0.0.1", port)
        passing = asyncio.ensure_future(pass_requests(reader, to_holder))
        received = b""
        with suppress(ConnectionError):
            while not is_whole(received) and (data := await holder.read(1 << 20)):
                received += data
            writer.write(await change(received))
            await writer.drain()
        passing.cancel()
        to_holder.close()
        writer.close()

    async def pass_requests(reader: asyncio.StreamReader, to_holder: asyncio.StreamWriter) -> None:
        while data := await reader.read(1 << 20):
            to_holder.write(data)

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        between = server.sockets[0].getsockname()[1]
        replicas.holder = replace(replicas.holder, address=f"http://127.0.0.1:{between}")
        yield


def by(change: Change) -> AnswerChange:
    async def changed(answer: bytes) -> bytes:
        return change(answer)

    return changed


async def answer_to(replicas: Replicas, body: bytes) -> bytes:
    """Everything that a caller gets until its connection is closed, or the answer is whole."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(replicas.url.rpartition(":")[2]))
    writer.write(post(body))
    received = b""
    async with asyncio.timeout(BOUND):
        while not is_whole(received) and (data := await reader.read(1 << 20)):
            received += data
    writer.close()
    return received


def with_length(answer: bytes, add: bytes) -> bytes:
    """One more byte in the body, and a length that fits."""
    return re.sub(rb"content-length: (\d+)", lambda found: b"content-length: %d" % (int(found[1]) + 1), answer) + add


def short_of(answer: bytes) -> bytes:
    return re.sub(rb"content-length: (\d+)", lambda found: b"content-length: %d" % (int(found[1]) - 1), answer)[:-1]


def proof_as(make: Change) -> Change:
    return lambda answer: PROOF.sub(lambda found: b"emceepee-hop: %b\r\n" % make(found[1]), answer)


CHANGES: dict[str, Change] = {
    "body": lambda answer: answer.replace(b"paid", b"owed"),
    "longer body": lambda answer: with_length(answer, b" "),
    "shorter body": short_of,
    "cut body": lambda answer: answer[:-1],
    "status": lambda answer: answer.replace(b" 200 ", b" 402 ", 1),
    "not held": lambda answer: answer.replace(b" 200 ", b" 421 ", 1),
    "header": lambda answer: answer.replace(b"no-store", b"max-age=9"),
    "one more header": lambda answer: answer.replace(b"\r\n\r\n", b"\r\nset-cookie: a=b\r\n\r\n", 1),
    "one header less": lambda answer: answer.replace(b"referrer-policy: no-referrer\r\n", b""),
    "nobody waits to hear that it was read": proof_as(lambda value: value + b" check"),
    "another proof": proof_as(lambda value: value[:-1] + (b"0" if value[-1:] != b"0" else b"1")),
    "a proof without its kind": proof_as(lambda value: value.split(b" ")[1]),
    "a proof of another kind": proof_as(lambda value: value.replace(b"whole", b"other")),
    "a proof that covers frames": proof_as(lambda value: value.replace(b"whole", b"framed")),
    "no value of a proof": proof_as(lambda value: b""),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
async def test_a_modified_response_is_reported_as_lost(
    replicas: Replicas, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    async with somebody_between(replicas, by(change)):
        received = await answer_to(replicas, b'{"status":"paid"}')
    assert received.endswith(b'{"outcome":"LOST"}')
    assert b"set-cookie" not in received
    if change is not CHANGES["cut body"]:  # which looks as if the connection had ended
        [record] = [record for record in caplog.records if record.getMessage() == "hop_response_changed"]
        assert "--replica-tls" in str(record.__dict__)


async def test_an_unmodified_response_is_accepted(replicas: Replicas) -> None:
    async with somebody_between(replicas, by(lambda answer: answer)):
        assert (await answer_to(replicas, b'{"status":"paid"}')).endswith(b'{"status":"paid"}')
    assert replicas.outcomes == [ForwardOutcome.ANSWERED]


async def test_swapped_responses_of_two_requests_are_rejected(replicas: Replicas) -> None:
    answers: list[bytes] = []
    both = asyncio.Event()

    async def swap(answer: bytes) -> bytes:
        place = len(answers)
        answers.append(answer)
        if len(answers) == 2:
            both.set()
        await asyncio.wait_for(both.wait(), BOUND)
        return answers[1 - place]

    async with somebody_between(replicas, swap):
        asking = [answer_to(replicas, b'{"of":"%b"}' % name) for name in (b"ada", b"bob")]
        received = await asyncio.gather(*asking)
    assert all(one.endswith(b'{"outcome":"LOST"}') for one in received)


# Long answers and streams, in frames.

LONG = b'"' + b"paid," * SHORT_BYTES + b'"'


@pytest.mark.parametrize("name", ["body", "cut body", "status", "header", "one more header", "another proof"])
async def test_a_modified_long_response_writes_nothing_to_the_caller(replicas: Replicas, name: str) -> None:
    async with somebody_between(replicas, by(CHANGES[name])):
        received = await answer_to(replicas, LONG)
    assert received.endswith(b'{"outcome":"LOST"}')


async def stream_three(request: HttpRequest, body: bytes) -> bool:
    await request.send({"type": "http.response.start", "status": 200, "headers": [*STREAM_HEADERS]})
    for number in range(3):
        await request.send({"type": "http.response.body", "body": b"data: %d\n\n" % number, "more_body": True})
    await request.send({"type": "http.response.body", "body": b""})
    return True


def chunks_of(answer: bytes) -> tuple[bytes, list[bytes]]:
    """The head, and what it is followed by in the chunks of HTTP; the end is not one of them."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    chunks: list[bytes] = []
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        chunks.append(rest[: int(size, 16)])
        rest = rest[int(size, 16) + 2 :]
    return head + b"\r\n\r\n", chunks[:-1]


def in_chunks(head: bytes, chunks: list[bytes]) -> bytes:
    return head + b"".join(b"%x\r\n%b\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n\r\n"


def chunks_as(change: Callable[[list[bytes]], list[bytes]]) -> Change:
    def changed(answer: bytes) -> bytes:
        head, chunks = chunks_of(answer)
        assert len(chunks) == 4
        return in_chunks(head, change(chunks))

    return changed


STREAM_CHANGES: dict[str, Change] = {
    "an event": lambda answer: answer.replace(b"data: 1", b"data: 9"),
    "two events swapped": chunks_as(lambda chunks: [chunks[1], chunks[0], *chunks[2:]]),
    "an event left out": chunks_as(lambda chunks: [chunks[0], *chunks[2:]]),
    "an event repeated": chunks_as(lambda chunks: [chunks[0], *chunks]),
    "an event added": chunks_as(lambda chunks: [*chunks[:3], b"data: 9\n\n", chunks[3]]),
    "cut between two events": chunks_as(lambda chunks: chunks[:2]),
    "cut in an event": chunks_as(lambda chunks: [*chunks[:2], chunks[2][: HEAD_BYTES + 3]]),
    "the end alone": chunks_as(lambda chunks: chunks[3:]),
    "nothing": chunks_as(lambda chunks: []),
}


@pytest.mark.parametrize("change", STREAM_CHANGES.values(), ids=STREAM_CHANGES.keys())
async def test_a_modified_stream_ends_with_an_error_and_without_the_modified_part(
    replicas: Replicas, change: Change, caplog: pytest.LogCaptureFixture
) -> None:
    replicas.target.serve = stream_three
    async with somebody_between(replicas, by(change)):
        received = await answer_to(replicas, b"{}")
    events = re.findall(rb"data: (.*)\n", received)
    assert events.pop() == b'{"lost":1}'
    assert events == [b"0", b"1", b"2"][: len(events)]
    assert "hop_response_changed" in [record.getMessage() for record in caplog.records]


async def test_an_unmodified_stream_is_accepted(replicas: Replicas) -> None:
    replicas.target.serve = stream_three
    async with somebody_between(replicas, by(lambda answer: answer)):
        assert re.findall(rb"data: (.*)\n", await answer_to(replicas, b"{}")) == [b"0", b"1", b"2"]


# Answers that nobody changes.


async def test_headers_of_the_hop_between_replicas_reach_neither_the_caller_nor_the_application(
    replicas: Replicas,
) -> None:
    received = await answer_to(replicas, LONG)
    assert b"emceepee-" not in received.partition(b"\r\n\r\n")[0]
    [request] = replicas.target.requests
    assert not [name for name in request.headers if name.startswith(b"emceepee-")]


def serve(body: bytes) -> Serve:
    async def answer(request: HttpRequest, given: bytes) -> bool:
        await respond(request.send, 200, body)
        return True

    return answer


@pytest.mark.parametrize("size", [0, 1000, 1_000_000])
async def test_the_proof_covers_the_headers_of_a_response(replicas: Replicas, size: int) -> None:
    replicas.target.serve = serve(b"x" * size)
    caller = replicas.caller()
    for _ in range(2):
        caller.received = b""
        caller.send(post(b"").replace(b"POST", b"HEAD", 1))
        await eventually(lambda: caller.read_some() and caller.received.endswith(b"\r\n\r\n"), what="a head arrives")
        assert b"HTTP/1.1 200 " in caller.received
        assert f"content-length: {size}\r\n".encode() in caller.received
    assert replicas.outcomes == [ForwardOutcome.ANSWERED] * 2


MEGABYTE = 1 << 20


@pytest.mark.alone
@pytest.mark.parametrize(("size", "count", "megabytes"), [(1000, 100, 10), (MEGABYTE, 15, 50)])
async def test_a_forwarded_request_with_its_proof_costs_less_than_hashing_some_megabytes(
    replicas: Replicas, size: int, count: int, megabytes: int
) -> None:
    replicas.target.serve = serve(b"x" * size)
    hops, hashes = list[float](), list[float]()
    for _ in range(7):
        begun = process_time()
        for _ in range(count):
            await answer_to(replicas, b"{}")
        hops.append((process_time() - begun) / count)
        begun = process_time()
        for _ in range(count):
            hmac.digest(KEY, b"x" * MEGABYTE, "sha256")
        hashes.append((process_time() - begun) / count)
    hop, of_hash = median(hops) * 1e6, median(hashes) * 1e6
    record_figure(
        f"a hop with an answer of {size} bytes and its proof takes {hop:.0f} µs of processor time, "
        f"caller and both replicas together; an HMAC-SHA256 of {MEGABYTE} bytes takes {of_hash:.0f} µs"
    )
    assert hop < megabytes * of_hash
