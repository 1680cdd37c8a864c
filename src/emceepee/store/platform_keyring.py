"""The platform's keyring, through the package `keyring`, which is imported only when it is used.

A keyring can be slow, and can wait for an absent person to unlock it. So one thread makes all calls, and each caller
has a timeout.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from typing import Any, Protocol, TypeVar

from emceepee.clock import Clock, within
from emceepee.futures import reject, resolve
from emceepee.store.store import StoreUnavailable

SERVICE = "emceepee"
KEYRING_SECONDS = 60.0  # time for a person to unlock it
T = TypeVar("T")


class NoKeyring(Exception):
    """No usable keyring. The message contains the next step for the user."""


class Keyring(Protocol):
    """Stores texts by name. Every method may raise StoreUnavailable."""

    async def read(self, name: str) -> str | None: ...

    async def write(self, name: str, text: str) -> None: ...

    async def delete(self, name: str) -> None:
        """Delete the text if it exists."""
        ...


def check_keyring() -> None:
    """Raises: NoKeyring."""
    try:
        import keyring
        from keyring.backends import fail, null
    except ImportError:
        raise NoKeyring("the package keyring is not installed: install emceepee[keyring]") from None
    try:
        found = keyring.get_keyring()
    except Exception as error:  # each backend raises its own errors
        raise NoKeyring(f"the keyring cannot be used: {_words(error)}") from None
    if isinstance(found, fail.Keyring | null.Keyring):
        raise NoKeyring(
            "this machine has no usable keyring. Start one (GNOME Keyring, KWallet, the macOS Keychain), or omit "
            "--secrets: then tokens are stored encrypted with the state"
        )


class PlatformKeyring:
    """Calls the keyring from one thread, which starts with the first call."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jobs: SimpleQueue[Callable[[], None]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._is_stuck = False

    async def read(self, name: str) -> str | None:
        return await self._ask(lambda: _keyring().get_password(SERVICE, name))

    async def write(self, name: str, text: str) -> None:
        await self._ask(lambda: _keyring().set_password(SERVICE, name, text))

    async def delete(self, name: str) -> None:
        def delete() -> None:
            from keyring.errors import PasswordDeleteError

            with suppress(PasswordDeleteError):  # it does not exist
                _keyring().delete_password(SERVICE, name)

        await self._ask(delete)

    async def _ask(self, question: Callable[[], T]) -> T:
        if self._is_stuck:
            raise _no_answer()
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def tell(report: Callable[[asyncio.Future[T], Any], object], outcome: Any) -> None:
            with suppress(RuntimeError):  # the loop is closed: no caller is waiting
                loop.call_soon_threadsafe(report, answer, outcome)

        def job() -> None:
            try:
                result = question()
            except Exception as error:  # each backend raises its own errors
                tell(reject, StoreUnavailable(f"The keyring cannot be used: {_words(error)}. Unlock it, or start it."))
            else:
                tell(resolve, result)
            self._is_stuck = False

        self._put(job)
        try:
            return await within(self._clock, KEYRING_SECONDS, answer)
        except TimeoutError:
            self._is_stuck = True
            answer.cancel()
            raise _no_answer() from None

    def _put(self, job: Callable[[], None]) -> None:
        self._jobs.put(job)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="emceepee-keyring", daemon=True)
            self._thread.start()

    def _work(self) -> None:
        while True:
            self._jobs.get()()


def _keyring() -> Any:
    try:
        import keyring
    except ImportError:
        raise NoKeyring("the package keyring is not installed: install emceepee[keyring]") from None
    return keyring


def _no_answer() -> StoreUnavailable:
    return StoreUnavailable(f"The keyring did not answer within {KEYRING_SECONDS:g} s. Unlock it.")


def _words(error: Exception) -> str:
    return str(error).partition("\n")[0].rstrip(".") or type(error).__name__
