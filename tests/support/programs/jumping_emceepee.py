"""An emceepee whose wall clock can be set: SIGVTALRM puts it an hour ahead, SIGUSR2 an hour back. The monotonic clock
goes on, as it does on a real machine."""

import datetime
import signal
import sys
import time

HOUR = 3600.0
_offset = 0.0
_real_time = time.time


def _jumping_time() -> float:
    return _real_time() + _offset


class _JumpingDatetime(datetime.datetime):
    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> "_JumpingDatetime":
        return cls.fromtimestamp(_jumping_time(), tz)


def _jump(number: int, frame: object) -> None:
    global _offset  # noqa: PLW0603  # a clock is a global thing
    _offset += HOUR if number == signal.SIGVTALRM else -HOUR


if __name__ == "__main__":
    time.time = _jumping_time
    datetime.datetime = _JumpingDatetime  # type: ignore[misc]  # whichever of Python's clocks is asked
    signal.signal(signal.SIGVTALRM, _jump)
    signal.signal(signal.SIGUSR2, _jump)
    from emceepee.cli.main import main

    sys.exit(main())
