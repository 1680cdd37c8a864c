"""A response is plain JSON until something precedes the answer, and is given up if nobody is there to read it."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from emceepee.guard.identity import CallerIdentity
from emceepee.json_rpc import notification_message
from emceepee.json_types import JsonObject
from emceepee.lifecycle import TaskOwner
from emceepee.server.http.exchange import DISCONNECT_CHECK_AFTER, Exchange, HttpRequest, StatelessExchange
from emceepee.server.http.replay import Replay
from emceepee.state.limits import Limits
from emceepee.web.asgi import CONNECTION
from support.fakes.clock import FakeClock, settle
from support.in_process.asgi_messages import Answered

NEWS = notification_message("notifications/progress", {"progress": 1})


class Client:
    """It stays until it is told to leave."""

    def __init__(self) -> None:
        self.clock, self.tasks, self.answered = FakeClock(), TaskOwner("exchange"), Answered()
        self.replay = Replay(self.clock, Limits(), self.tasks)
        self.left = asyncio.Event()
        self.given_up: list[str] = []
        scope = {"extensions": {CONNECTION: self}}
        self.http = HttpRequest(scope, {}, self._receive, self.answered.send, CallerIdentity())

    async def _receive(self) -> JsonObject:
        await self.left.wait()
        return {"type": "http.disconnect"}

    def is_gone(self) -> bool:
        return self.left.is_set()

    def give_up_response(self) -> None:
        self.given_up.append("response")

    def if_unread(self, report: Callable[[], None]) -> None: ...

    def exchange(self) -> Exchange:
        return Exchange(self.replay, self.http, clock=self.clock, header=(b"x", b"y"), primes=True)

    def stateless(self, on_gone: Callable[[], None] = lambda: None) -> StatelessExchange:
        return StatelessExchange(self.http, clock=self.clock, tasks=self.tasks, on_gone=on_gone)


@asynccontextmanager
async def a_client() -> AsyncIterator[Client]:
    client = Client()
    try:
        yield client
    finally:
        await client.tasks.close(within=1)


async def test_an_exchange_shows_how_far_its_response_is() -> None:
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


async def test_a_stateless_exchange_shows_how_far_its_response_is() -> None:
    async with a_client() as client:
        exchange = client.stateless()
        assert repr(exchange) == "<StatelessExchange not begun>"
        exchange.send(NEWS)
        assert repr(exchange) == "<StatelessExchange streaming>"
        client.left.set()
        await settle()
        assert repr(exchange) == "<StatelessExchange gone>"


async def test_to_ask_whether_a_caller_is_gone_changes_nothing() -> None:
    async with a_client() as client:
        exchange = client.exchange()
        client.left.set()
        assert exchange.is_gone
        assert client.given_up == []
        assert not await exchange.answer({})
        assert client.given_up == ["response"]
        assert client.answered.status == 0


async def test_a_caller_that_cannot_resume_is_watched_after_half_a_second() -> None:
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
