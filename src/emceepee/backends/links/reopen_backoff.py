"""The delay before an ended stream is reopened: never zero, and longer after each short-lived stream."""

from emceepee.clock import Clock
from emceepee.state.connection.retry import RetryPolicy

LEAST_PAUSE = 0.1  # seconds
LASTING_SECONDS = 5.0  # a stream that stayed open for this long resets the delay
# No caller waits for pushed messages, so their delay may grow long. A caller does wait for an answer, and a server that
# makes its client poll may end each stream at once.
PUSHES = RetryPolicy(base=LEAST_PAUSE, longest=30.0, stable_after=LASTING_SECONDS)
ANSWERS = RetryPolicy(base=LEAST_PAUSE, longest=5.0, stable_after=LASTING_SECONDS)
CHANGES = RetryPolicy(base=LEAST_PAUSE, longest=60.0, stable_after=LASTING_SECONDS)


class ReopenBackoff:
    """The backoff of one stream, across all its reopenings."""

    def __init__(self, clock: Clock, policy: RetryPolicy) -> None:
        self._clock, self._policy = clock, policy
        self._opened_at: float | None = None
        self._attempt = 0

    def mark_opened(self) -> None:
        self._opened_at = self._clock.monotonic()

    def next_pause(self, asked: float = 0.0) -> float:
        """Return the seconds until the next attempt, after the last stream ended or failed.

        `asked` is the delay that the server requests.
        """
        if self._opened_at is not None and self._clock.monotonic() - self._opened_at >= self._policy.stable_after:
            self._attempt = 0
        self._opened_at = None
        self._attempt += 1
        return max(asked, self._policy.delay(self._attempt, 0.0))
