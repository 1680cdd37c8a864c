"""The documented balancer configurations for replicas work as described."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from support.system.balancers import (
    BALANCERS,
    EXAMPLE_NAME,
    REPLICA_ADDRESSES,
    REPLICAS,
    adapt_example,
    documented,
    running_balancer,
)
from support.system.ports import free_port
from support.system.upstreams import Upstream, running_upstreams

RULES = ["plain", "by-slot"]
ULID = "01KE9GQ4ZX3V2M5T8R7N6P1Y0W"
EVENTS, LATE = 20, 2.0  # events one after the other, and the seconds that they may take; HAProxy may take 0.2 for each


def example(name: str, rule: str) -> str:
    plain = documented(REPLICAS, name)
    if rule == "plain":
        return plain
    by_slot = documented(REPLICAS, name, "by-slot")
    if name == "haproxy":
        return plain + by_slot  # the backend is the last section
    round_robin = "location / {\n        proxy_pass http://replicas;"
    assert round_robin in plain
    return by_slot + plain.replace(round_robin, round_robin.replace("replicas", "$replica"))


@dataclass(frozen=True, slots=True)
class Balanced:
    """Two upstreams behind a balancer."""

    http: aiohttp.ClientSession
    url: str
    first: Upstream
    second: Upstream

    def request(
        self, session_id: str | None = None, body: bytes = b"{}"
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        headers = {"host": EXAMPLE_NAME} | ({} if session_id is None else {"mcp-session-id": session_id})
        return self.http.post(self.url, data=body, headers=headers)

    async def post(self, session_id: str | None = None, body: bytes = b"{}") -> tuple[int, str]:
        """Status, and who answered."""
        async with self.request(session_id, body) as response:
            return response.status, await response.text()

    async def answering(self, session_id: str | None, count: int) -> list[str]:
        """Who answers each of so many requests."""
        return [(await self.post(session_id))[1] for _ in range(count)]


@asynccontextmanager
async def balanced(name: str, rule: str, folder: Path, *, has_tls: bool = True) -> AsyncIterator[Balanced]:
    port, scheme = free_port(), "https" if has_tls else "http"
    async with running_upstreams("first", "second") as (first, second):
        addresses = dict(zip(REPLICA_ADDRESSES, (first.address, second.address), strict=True))
        text = adapt_example(name, example(name, rule), folder, port=port, addresses=addresses, has_tls=has_tls)
        tls = ssl.create_default_context(cafile=folder / "certificate.pem" if has_tls else None)
        async with (
            running_balancer(name, text, folder, port=port),
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=tls)) as http,
            asyncio.timeout(60),
        ):
            yield Balanced(http, f"{scheme}://127.0.0.1:{port}/mcp", first, second)


@pytest.mark.parametrize("name", BALANCERS)
async def test_each_balancer_distributes_the_requests_of_any_session_over_all_replicas(
    name: str, tmp_path: Path
) -> None:
    async with balanced(name, "plain", tmp_path) as service:
        for session_id in (None, f"{ULID}-01", f"{ULID}-02"):
            assert sorted(await service.answering(session_id, 4)) == ["first", "first", "second", "second"]
        headers = service.first.received[-1].headers
        assert headers["host"] == EXAMPLE_NAME
        assert headers["x-forwarded-for"] == "127.0.0.1"
        assert headers["x-forwarded-proto"] == "https"


@pytest.mark.parametrize("name", BALANCERS)
async def test_balancers_route_an_id_to_the_replica_of_the_slot_at_its_end(name: str, tmp_path: Path) -> None:
    async with balanced(name, "by-slot", tmp_path) as service:
        assert await service.answering(f"{ULID}-01", 4) == ["first"] * 4
        assert await service.answering(f"{ULID}-02", 4) == ["second"] * 4
        for elsewhere in (None, ULID, f"{ULID}-07", f"{ULID}-011", f"{ULID}-01-03", f"{ULID}01"):
            assert sorted(await service.answering(elsewhere, 4)) == ["first", "first", "second", "second"]


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", BALANCERS)
async def test_balancers_retry_a_refused_request_at_another_replica(name: str, rule: str, tmp_path: Path) -> None:
    async with balanced(name, rule, tmp_path) as service:
        service.first.respond = service.first.refuse
        for session_id in (None, f"{ULID}-01"):
            for number in range(4):
                body = f'{{"number":{number}}}'.encode()
                assert await service.post(session_id, body) == (200, "second")
                assert service.second.received[-1].body == body
        service.second.respond = service.second.refuse
        for session_id in (None, f"{ULID}-01", f"{ULID}-02", None, None):
            async with service.request(session_id) as response:
                assert (response.status, response.headers["retry-after"]) == (503, "1")
        service.first.respond = service.first.say_name
        assert await service.answering(None, 4) == ["first"] * 4


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", BALANCERS)
async def test_balancers_skip_a_replica_that_is_down(name: str, rule: str, tmp_path: Path) -> None:
    async with balanced(name, rule, tmp_path) as service:
        await service.first.stop()
        for session_id in (None, f"{ULID}-01"):
            assert await service.answering(session_id, 4) == ["second"] * 4


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", BALANCERS)
async def test_balancers_do_not_resend_a_call_whose_replica_died(name: str, rule: str, tmp_path: Path) -> None:
    async with balanced(name, rule, tmp_path) as service:
        for upstream in (service.first, service.second):
            upstream.respond = upstream.hang_up
        for count, session_id in enumerate((None, f"{ULID}-01", f"{ULID}-02", None), 1):
            try:
                status, _ = await service.post(session_id)
            except aiohttp.ServerDisconnectedError:
                status = 502  # HAProxy does so where the connection had been used before
            assert status == 502
            assert len(service.first.received) + len(service.second.received) == count


@pytest.mark.parametrize("has_tls", [True, False])
@pytest.mark.parametrize("name", BALANCERS)
async def test_balancers_forward_each_event_of_a_stream_at_once(name: str, has_tls: bool, tmp_path: Path) -> None:
    """The server sends the next event after the last one was read."""
    was_read = asyncio.Semaphore(0)

    async def stream(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        for number in range(EVENTS):
            await response.write(f"data: {number}\n\n".encode())
            await was_read.acquire()
        return response

    async with balanced(name, "plain", tmp_path, has_tls=has_tls) as service:
        service.first.respond = service.second.respond = stream
        async with (
            asyncio.timeout(LATE),
            service.http.get(service.url, headers={"host": EXAMPLE_NAME}) as response,
        ):
            for number in range(EVENTS):
                assert await response.content.readline() == f"data: {number}\n".encode()
                assert await response.content.readline() == b"\n"
                was_read.release()
