"""Futures with several possible resolvers: the first one sets the outcome, and later ones have no effect."""

from asyncio import Future, get_running_loop
from typing import TypeVar

T = TypeVar("T")


def resolve(future: "Future[T]", result: T) -> None:
    """Set the result, unless the future already has an outcome or its waiter was cancelled."""
    if not future.done():
        future.set_result(result)


def reject(future: "Future[T]", error: BaseException) -> None:
    """Set an error like `resolve` sets a result. It is never logged as unretrieved: there may be no waiter left."""
    if not future.done():
        future.set_exception(error)
        future.exception()


async def let_others_run() -> None:
    """Yield to all ready callbacks between two parts of a long computation."""
    turn: Future[None] = get_running_loop().create_future()
    get_running_loop().call_soon(resolve, turn, None)
    await turn
