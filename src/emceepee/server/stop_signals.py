"""What tells the process to stop, and how long those who wait have then."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

FINISH_SECONDS = 2.0  # for calls that are nearly done
LET_GO_SECONDS = 0.5  # for the replies of those whose calls were given up
PASSED_ON_SECONDS = 4.0  # after that, for the answers of other replicas, whose calls nothing has to end


def stop_signals() -> list[signal.Signals]:
    """SIGHUP too, as a terminal sends it that is closed, unless it was ignored when we were started, as by nohup."""
    hears_hang_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hears_hang_up else [])]


def on_stop_signals(stop: Callable[[], None]) -> None:
    """Have it called by the running loop at each of them."""
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        with suppress(NotImplementedError, RuntimeError):  # not in a thread, not on every platform
            loop.add_signal_handler(number, stop)
