"""The authorization server that a connection waits for or could not reach, shown in its status."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from emceepee.clock import Clock

SLOW_SECONDS = 1.0  # a longer wait is reported


class LoginTrouble:
    """One per connection. `on_change` is called when `words` changes, outside of any step of the connection."""

    def __init__(self, clock: Clock, on_change: Callable[[], None]) -> None:
        self._clock, self._on_change = clock, on_change
        self._words: str | None = None
        self._waiting: list[Callable[[], str]] = []

    @property
    def words(self) -> str | None:
        return self._waiting[0]() if self._waiting else self._words

    def note(self, words: str | None) -> None:
        """Record the problem of the last attempt, or None if it succeeded."""
        if words != self._words:
            self._words = words
            self._on_change()

    @contextmanager
    def while_waiting(self, words: Callable[[], str]) -> Iterator[None]:
        """Report a slow wait for an authorization server while the context is open."""
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
