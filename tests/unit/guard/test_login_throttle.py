"""Wrong secrets from one address are rejected with growing delays; right ones wait once, and only there."""

import asyncio
import logging
from collections.abc import Coroutine

import pytest

from emceepee.guard.login_throttle import FORGET_SECONDS, FREE_TRIES, LONGEST, MOST_KEPT, PROVEN_SECONDS, LoginThrottle
from support.fakes.clock import FakeClock, settle


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def throttle(clock: FakeClock) -> LoginThrottle:
    return LoginThrottle(clock)


async def fails(throttle: LoginThrottle, clock: FakeClock, peer: str | None = "10.0.0.1") -> float:
    """Return the delay of the response."""
    return await waited(throttle.delay_failure(peer), clock)


async def succeeds(
    throttle: LoginThrottle, clock: FakeClock, secret: bytes = b"right", peer: str | None = "10.0.0.1"
) -> float:
    return await waited(throttle.delay_success(peer, secret), clock)


async def waited(work: Coroutine[None, None, None], clock: FakeClock) -> float:
    began, waiting = clock.monotonic(), asyncio.create_task(work)
    await settle()
    while not waiting.done():
        await clock.advance(0.01)
    return round(clock.monotonic() - began, 3)


async def test_the_first_wrong_secrets_are_rejected_at_once_and_later_ones_with_growing_delays(
    throttle: LoginThrottle, clock: FakeClock
) -> None:
    delays = [await fails(throttle, clock) for _ in range(FREE_TRIES + 7)]
    assert delays == pytest.approx([*[0] * FREE_TRIES, 0.05, 0.1, 0.2, 0.4, 0.8, LONGEST, LONGEST], abs=0.011)


async def test_concurrent_wrong_secrets_each_wait_for_their_own_delay(
    throttle: LoginThrottle, clock: FakeClock
) -> None:
    began = clock.monotonic()
    waiting = [asyncio.create_task(throttle.delay_failure("10.0.0.1")) for _ in range(20)]
    await settle()
    assert sum(task.done() for task in waiting) == FREE_TRIES
    await clock.advance(LONGEST)
    assert all(task.done() for task in waiting)
    assert clock.monotonic() - began == LONGEST


async def test_a_right_secret_never_waits_at_an_address_without_failures(
    throttle: LoginThrottle, clock: FakeClock
) -> None:
    assert await succeeds(throttle, clock) == 0
    for _ in range(20):
        await fails(throttle, clock, "10.0.0.2")
    assert await succeeds(throttle, clock) == 0


async def test_a_right_secret_waits_once_at_an_address_with_failures(throttle: LoginThrottle, clock: FakeClock) -> None:
    for _ in range(20):
        await fails(throttle, clock)
    assert await succeeds(throttle, clock) == pytest.approx(LONGEST, abs=0.011)
    assert await succeeds(throttle, clock) == 0
    assert await succeeds(throttle, clock, b"another") == pytest.approx(LONGEST, abs=0.011)
    assert await succeeds(throttle, clock) == 0


async def test_a_right_secret_waits_again_much_later_if_failures_continue(
    throttle: LoginThrottle, clock: FakeClock
) -> None:
    for _ in range(FREE_TRIES + 1):
        await fails(throttle, clock)
    await succeeds(throttle, clock)
    await clock.advance(PROVEN_SECONDS)
    for _ in range(FREE_TRIES + 1):
        await fails(throttle, clock)
    assert await succeeds(throttle, clock) > 0


async def test_login_failures_are_forgotten_after_a_time(throttle: LoginThrottle, clock: FakeClock) -> None:
    for _ in range(20):
        await fails(throttle, clock)
    await clock.advance(FORGET_SECONDS + 1)
    assert await fails(throttle, clock) == 0
    assert await succeeds(throttle, clock) == 0


async def test_the_addresses_of_one_ipv6_network_share_a_throttle(throttle: LoginThrottle, clock: FakeClock) -> None:
    for number in range(20):
        await fails(throttle, clock, f"2001:db8::{number}")
    assert await fails(throttle, clock, "2001:db8::ffff") > 0
    assert await fails(throttle, clock, "2001:db8:1::1") == 0
    assert await fails(throttle, clock, None) == 0


async def test_the_memory_of_the_login_throttle_is_limited(throttle: LoginThrottle, clock: FakeClock) -> None:
    for number in range(MOST_KEPT + 50):
        await throttle.delay_failure(f"10.0.{number // 256}.{number % 256}")
    assert len(throttle._failures) == MOST_KEPT
    for _ in range(FREE_TRIES + 1):
        await fails(throttle, clock, "10.9.9.9")
    secrets = [str(number).encode() for number in range(MOST_KEPT + 50)]
    waiting = [asyncio.create_task(throttle.delay_success("10.9.9.9", secret)) for secret in secrets]
    await settle()
    await clock.advance(LONGEST)
    assert all(task.done() for task in waiting)
    assert len(throttle._proven) == MOST_KEPT


async def test_a_login_throttle_is_logged_once(
    throttle: LoginThrottle, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="emceepee.guard"):
        for _ in range(FREE_TRIES + 5):
            await fails(throttle, clock)
    assert [record.getMessage() for record in caplog.records] == ["wrong_secrets"]
