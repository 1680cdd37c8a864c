import asyncio
import socket
from contextlib import suppress

import pytest

from emceepee.backends.http1.resolver import KEPT_SECONDS, Resolver, SocketAddress
from support.fakes.clock import FakeClock, settle

HERE: list[SocketAddress] = [(socket.AF_INET, ("127.0.0.1", 80))]


class ScriptedResolver:
    """Answers when the test lets it."""

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


async def test_a_crowd_asks_once_and_all_get_the_answer() -> None:
    resolver = ScriptedResolver()
    names = Resolver(FakeClock(), resolver)
    crowd = [asyncio.ensure_future(names.addresses("a.example", 80)) for _ in range(100)]
    await settle()
    crowd.pop().cancel()  # even if the first caller leaves
    crowd.pop(0).cancel()
    resolver.may_answer.set()
    assert await asyncio.gather(*crowd) == [HERE] * 98
    assert resolver.asked == ["a.example"]


async def test_an_answer_is_good_for_a_while() -> None:
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


async def test_an_answer_that_led_nowhere_is_forgotten() -> None:
    resolver = ScriptedResolver()
    resolver.may_answer.set()
    names = Resolver(FakeClock(), resolver)
    await names.addresses("a.example", 80)
    names.forget("a.example", 80)
    names.forget("never.example", 80)
    await names.addresses("a.example", 80)
    assert len(resolver.asked) == 2


@pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("label too long")])
async def test_a_failure_reaches_all_callers_and_is_not_cached(error: Exception) -> None:
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
async def test_for_an_address_nobody_is_asked(host: str, family: socket.AddressFamily, address: object) -> None:
    resolver = ScriptedResolver()
    assert await Resolver(FakeClock(), resolver).addresses(host, 80) == [(family, address)]
    assert resolver.asked == []


async def test_closing_ends_what_is_asked() -> None:
    names = Resolver(FakeClock(), ScriptedResolver())
    asking = asyncio.ensure_future(names.addresses("a.example", 80))
    await settle()
    await names.close()
    with suppress(asyncio.CancelledError):
        await asking
    assert asking.cancelled()


async def test_the_system_knows_this_machine() -> None:
    assert (socket.AF_INET, ("127.0.0.1", 80)) in await Resolver(FakeClock()).addresses("localhost", 80)
