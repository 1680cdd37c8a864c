"""The signals that stop the process, and how long pending work may then take."""

import asyncio
import signal
from collections.abc import Callable
from contextlib import suppress

FINISH_SECONDS = 2.0  # for nearly finished calls
LET_GO_SECONDS = 0.5  # for the replies of canceled calls
PASSED_ON_SECONDS = 4.0  # after that, for the answers of other replicas, whose calls need not end


def stop_signals() -> list[signal.Signals]:
    """Return the stop signals. SIGHUP, sent by a closed terminal, is one unless ignored at startup, as by nohup."""
    hears_hang_up = signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN
    return [signal.SIGINT, signal.SIGTERM, *([signal.SIGHUP] if hears_hang_up else [])]


def on_stop_signals(stop: Callable[[], None]) -> None:
    """Register `stop` with the running loop for each stop signal."""
    loop = asyncio.get_running_loop()
    for number in stop_signals():
        with suppress(NotImplementedError, RuntimeError):  # unsupported outside the main thread, and on some platforms
            loop.add_signal_handler(number, stop)
