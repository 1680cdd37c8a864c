"""The daemon's end of its socket, in the process of the test, with nothing behind it."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from emceepee.clock import Clock, SystemClock
from emceepee.daemon.attached_callers import AttachedCallers
from emceepee.daemon.daemon_socket import listening_socket
from emceepee.daemon.greeting import DaemonHello

HELLO = DaemonHello(version="1", configuration="mine", session="one", is_kept=False)


class Refusing:
    """A check that admits nobody. Only callers who pass the earlier checks reach it."""

    notice = None

    async def refusal(self, hello: DaemonHello) -> str | None:
        return f"not for {hello.session}"


@asynccontextmanager
async def listening(
    folder: Path, clock: Clock | None = None, by: Callable[[socket.socket], socket.socket] = socket.socket.dup
) -> AsyncIterator[AttachedCallers]:
    """`by` is how the daemon sees its socket."""
    callers = AttachedCallers(
        cast(Any, None),
        cast(Any, None),
        cast(Any, SimpleNamespace(clock=clock or SystemClock())),
        Refusing(),
        longest_line=1 << 20,
        link_file=None,
    )
    with listening_socket(folder) as listener, by(listener) as seen:
        accepting = asyncio.ensure_future(callers.accept(seen, lambda: None))
        try:
            yield callers
        finally:
            accepting.cancel()
            await callers.close()
