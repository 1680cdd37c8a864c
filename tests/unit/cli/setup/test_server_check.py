"""Checking a server with a scripted dialer and a fake clock."""

import asyncio
import os
from pathlib import Path
from typing import Any, cast

from emceepee.backends.dialer import Dialer
from emceepee.backends.spec import BackendSpec, StdioTarget
from emceepee.cli.setup.server_check import check_server, missing_interpreter
from emceepee.clock import Clock
from support.fakes.clock import FakeClock

CLEANUP_SECONDS = 2.0


class SilentDialer:
    """A dialer whose servers never answer and take time to stop."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock

    async def dial(self, spec: object, listener: object) -> Any:
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            self._clock.jump(CLEANUP_SECONDS)


def test_a_named_pipe_given_as_a_program_does_not_block_the_check(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "program")
    assert missing_interpreter(tmp_path / "program") is None


async def test_the_shutdown_time_of_a_silent_server_does_not_count_toward_its_check_timeout() -> None:
    clock = FakeClock()
    spec = BackendSpec(name="silent", target=StdioTarget(command="/bin/cat"))
    examining = asyncio.ensure_future(
        check_server(spec, cast(Dialer, SilentDialer(clock)), cast(Clock, clock), patience=10.0)
    )
    await clock.advance(10)
    examined = await asyncio.wait_for(examining, 5)
    assert examined.findings[0].message == "it did not answer within 10 s"
    assert examined.seconds == 10.0
