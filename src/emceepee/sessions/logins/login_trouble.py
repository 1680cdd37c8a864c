"""Which authorization server a connection waits for, or could not get an answer from: for whoever looks at it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from emceepee.clock import Clock

SLOW_SECONDS = 1.0  # after which it is worth telling that someone is waited for


class LoginTrouble:
    """One for each connection. `on_change` is called when `words` are others, outside of any step of the connection."""

    def __init__(self, clock: Clock, on_change: Callable[[], None]) -> None:
        self._clock, self._on_change = clock, on_change
        self._words: str | None = None
        self._waiting: list[Callable[[], str]] = []

    @property
    def words(self) -> str | None:
        return self._waiting[0]() if self._waiting else self._words

    def note(self, words: str | None) -> None:
        """What came of the last attempt; None if it was good."""
        if words != self._words:
            self._words = words
            self._on_change()

    @contextmanager
    def while_waiting(self, words: Callable[[], str]) -> Iterator[None]:
        """For an authorization server. It is told if that takes long."""
        alarm = self._clock.call_later(SLOW_SECONDS, lambda: self._begin(words))
        try:
            yield
        finally:
            alarm.cancel()
            if words in self._waiting:
                self._waiting.remove(words)
                self._on_change()

    def _begin(self, words: Callable[[], str]) -> None:
        self._waiting.append(words)
        self._on_change()
