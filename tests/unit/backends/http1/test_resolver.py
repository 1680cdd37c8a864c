import asyncio
import socket
from contextlib import suppress

import pytest

from emceepee.backends.http1.resolver import KEPT_SECONDS, Resolver, SocketAddress
from support.fakes.clock import FakeClock, settle

HERE: list[SocketAddress] = [(socket.AF_INET, ("127.0.0.1", 80))]


class ScriptedResolver:
    """A resolver that answers when the test allows it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.error: Exception | None = None
        self.may_answer = asyncio.Event()

    async def __call__(self, host: str, port: int) -> list[SocketAddress]:
        self.asked.append(host)
        await self.may_answer.wait()
        if self.error is not None:
            raise self.error
        return HERE


async def test_concurrent_lookups_of_one_host_share_one_dns_query() -> None:
    resolver = ScriptedResolver()
    names = Resolver(FakeClock(), resolver)
    crowd = [asyncio.ensure_future(names.addresses("a.example", 80)) for _ in range(100)]
    await settle()
    crowd.pop().cancel()  # even if the first caller leaves
    crowd.pop(0).cancel()
    resolver.may_answer.set()
    assert await asyncio.gather(*crowd) == [HERE] * 98
    assert resolver.asked == ["a.example"]


async def test_a_dns_answer_is_cached_for_a_limited_time() -> None:
    resolver, clock = ScriptedResolver(), FakeClock()
    resolver.may_answer.set()
    names = Resolver(clock, resolver)
    for _ in range(3):
        assert await names.addresses("a.example", 80) == HERE
    await names.addresses("b.example", 80)
    assert resolver.asked == ["a.example", "b.example"]
    await clock.advance(KEPT_SECONDS)
    await names.addresses("a.example", 80)
    assert resolver.asked == ["a.example", "b.example", "a.example"]
    assert len(names._known) == 1


async def test_a_dns_answer_is_forgotten_on_request() -> None:
    resolver = ScriptedResolver()
    resolver.may_answer.set()
    names = Resolver(FakeClock(), resolver)
    await names.addresses("a.example", 80)
    names.forget("a.example", 80)
    names.forget("never.example", 80)
    await names.addresses("a.example", 80)
    assert len(resolver.asked) == 2


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
async def test_a_dns_failure_reaches_all_callers_and_is_not_cached(error: Exception) -> None:
    resolver = ScriptedResolver()
    resolver.error = error
    names = Resolver(FakeClock(), resolver)
    crowd = [asyncio.ensure_future(names.addresses("a.example", 80)) for _ in range(3)]
    resolver.may_answer.set()
    assert await asyncio.gather(*crowd, return_exceptions=True) == [error] * 3
    resolver.error = None
    assert await names.addresses("a.example", 80) == HERE


@pytest.mark.parametrize(
    ("host", "family", "address"),
    [
        ("127.0.0.1", socket.AF_INET, ("127.0.0.1", 80)),
        ("::1", socket.AF_INET6, ("::1", 80, 0, 0)),
    ],
)
async def test_a_literal_ip_address_is_not_looked_up(host: str, family: socket.AddressFamily, address: object) -> None:
    resolver = ScriptedResolver()
    assert await Resolver(FakeClock(), resolver).addresses(host, 80) == [(family, address)]
    assert resolver.asked == []


async def test_closing_the_resolver_cancels_pending_lookups() -> None:
    names = Resolver(FakeClock(), ScriptedResolver())
    asking = asyncio.ensure_future(names.addresses("a.example", 80))
    await settle()
    await names.close()
    with suppress(asyncio.CancelledError):
        await asking
    assert asking.cancelled()


async def test_the_resolver_resolves_localhost() -> None:
    assert (socket.AF_INET, ("127.0.0.1", 80)) in await Resolver(FakeClock()).addresses("localhost", 80)
