"""Log messages of the OpenTelemetry libraries: an unreachable collector logs one line a minute, not one per try."""

import logging
import re
from collections.abc import Iterator
from contextlib import contextmanager

from emceepee.clock import Clock
from emceepee.telemetry.logs import EventLog

log = EventLog("otel")
PAUSE_SECONDS = 60.0
LONGEST_WORDS = 400
# These loggers quote data from callers.
_ABOUT_CALLERS = re.compile(r"opentelemetry\.(baggage|trace\.propagation|trace\.span)(\.|$)")


class Complaints(logging.Handler):
    """Passes on the first message of each minute, with the number of messages suppressed since the last one."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(logging.WARNING)
        self.addFilter(lambda record: _ABOUT_CALLERS.match(record.name) is None)
        self._clock, self._next, self._left_out = clock, clock.monotonic(), 0

    def emit(self, record: logging.LogRecord) -> None:
        now = self._clock.monotonic()
        if now < self._next:
            self._left_out += 1
            return
        log.warning("telemetry_trouble", message=record.getMessage()[:LONGEST_WORDS], leftOut=self._left_out)
        self._next, self._left_out = now + PAUSE_SECONDS, 0


@contextmanager
def complaints_heard(clock: Clock) -> Iterator[None]:
    logger, handler = logging.getLogger("opentelemetry"), Complaints(clock)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = True
        logger.removeHandler(handler)
