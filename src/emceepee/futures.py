"""Futures that several may settle, each at any time: the first one does, and whoever comes later changes nothing."""

from asyncio import Future, get_running_loop
from typing import TypeVar

T = TypeVar("T")


def resolve(future: "Future[T]", result: T) -> None:
    """Set the result, unless the future has an outcome already or whoever awaited it was cancelled."""
    if not future.done():
        future.set_result(result)


def reject(future: "Future[T]", error: BaseException) -> None:
    """The same with an error. It is not logged as never retrieved: there may be nobody left who awaits it."""
    if not future.done():
        future.set_exception(error)
        future.exception()


async def let_others_run() -> None:
    """Between two parts of a long computation: whatever is ready goes first."""
    turn: Future[None] = get_running_loop().create_future()
    get_running_loop().call_soon(resolve, turn, None)
    await turn
