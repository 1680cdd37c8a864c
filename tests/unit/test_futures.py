import asyncio
import gc

import pytest

from emceepee.futures import reject, resolve


def a_future() -> "asyncio.Future[int]":
    return asyncio.get_running_loop().create_future()


async def test_the_first_result_of_a_future_counts_and_later_ones_are_ignored() -> None:
    first, second = a_future(), a_future()
    resolve(first, 1)
    resolve(first, 2)
    reject(first, ValueError())
    assert await first == 1
    reject(second, KeyError("a"))
    resolve(second, 1)
    with pytest.raises(KeyError):
        await second


async def test_a_cancelled_future_stays_cancelled() -> None:
    future = a_future()
    future.cancel()
    resolve(future, 1)
    reject(future, ValueError())
    assert future.cancelled()


async def test_a_rejected_future_without_a_waiter_is_not_logged() -> None:
    reported: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: reported.append(context))
    reject(a_future(), ValueError())
    gc.collect()
    assert reported == []
