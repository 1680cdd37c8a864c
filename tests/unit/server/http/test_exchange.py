"""A response is plain JSON until something precedes the answer, and is abandoned if its caller disconnects."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from emceepee.guard.caller_identity import CallerIdentity
from emceepee.lifecycle import TaskOwner
from emceepee.server.http.exchange import (
    DISCONNECT_CHECK_AFTER,
    STREAM_AFTER,
    Exchange,
    HttpRequest,
    StatelessExchange,
)
from emceepee.server.http.replay.replay import Replay
from emceepee.state.client_line import ClientLine
from emceepee.state.limits import Limits
from emceepee.web.asgi import CONNECTION
from emceepee.web.streams import END_SECONDS, PART_BYTES
from emceepee.wire.json_rpc import notification_message
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import FakeClock, settle
from support.in_process.asgi_messages import Answered

NEWS = notification_message("notifications/progress", {"progress": 1})


class Client:
    """A client that stays connected until the test releases it."""

    def __init__(self, accept: str = "*/*") -> None:
        self.clock, self.tasks, self.answered = FakeClock(), TaskOwner("exchange"), Answered()
        self.replay = Replay(self.clock, Limits(), self.tasks)
        self.left = asyncio.Event()
        self.given_up: list[str] = []
        self.held = self.most_held = 0
        self.can_write = asyncio.Event()
        self.can_write.set()
        self.line = ClientLine()
        self.is_lost = False
        scope, headers = {"extensions": {CONNECTION: self}}, {b"accept": accept.encode()}
        self.http = HttpRequest(scope, headers, self._receive, self._send, CallerIdentity())

    async def _send(self, message: JsonObject) -> None:
        await self.can_write.wait()
        await self.answered.send(message)

    async def _receive(self) -> JsonObject:
        await self.left.wait()
        return {"type": "http.disconnect"}

    def is_gone(self) -> bool:
        return self.is_lost or self.left.is_set()

    def give_up_response(self) -> None:
        self.given_up.append("response")

    def hold(self, size: int) -> None:
        self.held += size
        self.most_held = max(self.most_held, self.held)

    def abort_response(self) -> None:
        self.given_up.append("connection")

    def if_unread(self, report: Callable[[], None]) -> None: ...

    def exchange(self) -> Exchange:
        return Exchange(self.replay, self.http, clock=self.clock, header=(b"x", b"y"), primes=True)

    def stateless(self, on_gone: Callable[[], None] = lambda: None) -> StatelessExchange:
        return StatelessExchange(self.http, clock=self.clock, tasks=self.tasks, on_gone=on_gone)


@asynccontextmanager
async def a_client(accept: str = "*/*") -> AsyncIterator[Client]:
    client = Client(accept)
    try:
        yield client
    finally:
        await client.tasks.close(within=1)


async def test_the_repr_of_an_exchange_shows_the_progress_of_its_response() -> None:
    async with a_client() as client:
        exchange = client.exchange()
        assert repr(exchange) == "<Exchange not begun>"
        exchange.send(NEWS)
        assert repr(exchange) == "<Exchange streaming>"
        assert repr(client.replay) == "<Replay messages=2 readers=['request 1']>"
        client.left.set()
        await settle()
        assert repr(exchange) == "<Exchange gone>"
        assert repr(client.replay) == "<Replay messages=2 readers=[]>"


async def test_the_repr_of_a_stateless_exchange_shows_the_progress_of_its_response() -> None:
    async with a_client() as client:
        exchange = client.stateless()
        assert repr(exchange) == "<StatelessExchange not begun>"
        exchange.send(NEWS)
        assert repr(exchange) == "<StatelessExchange streaming>"
        client.left.set()
        await settle()
        assert repr(exchange) == "<StatelessExchange gone>"


async def test_asking_whether_a_caller_is_gone_changes_nothing() -> None:
    async with a_client() as client:
        exchange = client.exchange()
        client.left.set()
        assert exchange.is_gone
        assert client.given_up == []
        assert not await exchange.answer({})
        assert client.given_up == ["response"]
        assert client.answered.status == 0


async def test_a_caller_that_cannot_resume_is_watched_for_disconnects_after_half_a_second() -> None:
    async with a_client() as client:
        reports: list[str] = []
        exchange = client.stateless(lambda: reports.append("gone"))
        client.left.set()
        await settle()
        assert reports == []
        await client.clock.advance(DISCONNECT_CHECK_AFTER)
        await settle()
        assert reports == ["gone"]
        assert not await exchange.answer({})


EACH_ERA = pytest.mark.parametrize("is_modern", [False, True], ids=["handshake", "2026-07-28"])


def an_exchange(client: Client, *, is_modern: bool) -> Exchange | StatelessExchange:
    return client.stateless() if is_modern else client.exchange()


@EACH_ERA
async def test_a_large_response_is_written_in_parts_and_held_until_the_last_one(is_modern: bool) -> None:
    async with a_client("text/event-stream") as client:
        text = "x" * (3 * PART_BYTES)
        assert await an_exchange(client, is_modern=is_modern).answer({"text": text})
        assert b'{"text":"%b"}' % text.encode() in bytes(client.answered.body)
        assert (client.held, client.most_held >= 3 * PART_BYTES) == (0, True)


@EACH_ERA
async def test_an_unread_response_waits_for_its_caller_to_read_or_disconnect(is_modern: bool) -> None:
    """Only the connection decides when to drop a caller."""
    async with a_client("text/event-stream") as client:
        client.can_write.clear()
        answering = asyncio.create_task(an_exchange(client, is_modern=is_modern).answer({}))
        done, _ = await asyncio.wait({answering}, timeout=1.5 * END_SECONDS)
        assert not done
        client.left.set()
        assert not await answering
        assert client.given_up == []


@EACH_ERA
async def test_a_caller_that_accepts_no_stream_gets_only_the_json_response_however_late_it_is(is_modern: bool) -> None:
    async with a_client("application/json") as client:
        exchange = an_exchange(client, is_modern=is_modern)
        exchange.send(NEWS)
        await client.clock.advance(2 * STREAM_AFTER)
        assert repr(exchange).endswith("not begun>")
        assert await exchange.answer({"id": 1})
        assert client.answered.headers["content-type"] == "application/json"
        assert client.answered.body == b'{"id":1}'


async def test_a_caller_that_accepts_no_stream_and_cannot_resume_is_watched_for_disconnects() -> None:
    async with a_client("application/json") as client:
        reports: list[str] = []
        exchange = client.stateless(lambda: reports.append("gone"))
        await client.clock.advance(2 * STREAM_AFTER)
        client.left.set()
        await settle()
        assert reports == ["gone"]
        assert not await exchange.answer({})


@EACH_ERA
async def test_a_caller_that_accepts_only_a_stream_gets_one_however_early_the_response_is(is_modern: bool) -> None:
    async with a_client("text/event-stream") as client:
        assert await an_exchange(client, is_modern=is_modern).answer({"id": 1})
        assert client.answered.headers["content-type"] == "text/event-stream"
        assert client.answered.body.endswith(b'data: {"id":1}\n\n')
        assert client.answered.is_whole


async def test_an_error_with_its_own_http_status_is_json_even_for_a_client_that_accepts_only_streams() -> None:
    async with a_client("text/event-stream") as client:
        assert await client.stateless().answer({"error": {}}, 400)
        assert (client.answered.status, client.answered.body) == (400, b'{"error":{}}')


async def test_a_response_written_to_a_resumed_connection_that_is_already_lost_counts_as_unread() -> None:
    """The connection notices its loss one loop turn before its waiters."""
    async with a_client() as client, a_client() as back:
        exchange = client.exchange()
        exchange.send(NEWS)
        await settle()
        client.left.set()
        await settle()
        reading = asyncio.create_task(
            client.replay.read(
                ("request 1", 1), back.answered.send, back.http.receive, (b"x", b"y"), connection=back.http.connection
            )
        )
        await settle()
        back.is_lost = True
        assert not await exchange.answer({"id": 1})
        assert back.given_up == ["response"]
        await reading
