"""A real `emceepee serve` that is killed or stopped and started again on the same state. Its callers go on with it."""

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp

from support.callers.http_process import BOUND, HttpProcess, address_of, launch, read_log
from support.system.processes import below, is_alive
from support.waiting import eventually


class RestartableProcess(HttpProcess):
    """`starts` counts its processes. Each has another address, which callers learn because they ask for it here."""

    def __init__(
        self,
        http: aiohttp.ClientSession,
        state: Path,
        *arguments: str,
        env: dict[str, str] | None,
        module: str = "emceepee",
    ) -> None:
        super().__init__(None, "", http)
        self.state, self.starts = state, 0
        self._arguments, self._env, self._module = arguments, env, module
        self._reading: asyncio.Task[None] | None = None

    @property
    def database(self) -> Path:
        return self.state / "emceepee" / "state.db"

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        assert not self.is_running
        self._process = process = await launch(*self._arguments, env=self._env, module=self._module, state=self.state)
        assert process.stderr is not None
        self.url = await address_of(process, self.log)
        self._reading = asyncio.create_task(read_log(process.stderr, self.log))
        self.starts += 1

    async def kill(self) -> None:
        """Without a word; what it started must end by itself."""
        children = below(self.process.pid)
        self.process.kill()
        await self._wait()
        await eventually(lambda: not any(map(is_alive, children)), what=f"what it started has ended: {children}")

    async def stop(self) -> None:
        """In order: it must end by itself."""
        self.process.terminate()
        assert await self._wait() == 0, self.log

    def pause(self) -> None:
        """Stop the process with all its connections open. Its children continue."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    async def restart(self, how: str) -> None:
        """After a `kill`, or a `stop`."""
        await (self.kill() if how == "kill" else self.stop())
        await self.start()

    async def _wait(self) -> int:
        async with asyncio.timeout(BOUND):
            code = await self.process.wait()
            if self._reading is not None:
                await self._reading
        return code


@asynccontextmanager
async def restartable_process(
    state: Path, *arguments: str, env: dict[str, str] | None = None, expected: str = "Nothing."
) -> AsyncIterator[RestartableProcess]:
    """It runs at the beginning; at the end no log of any of its processes may hold a traceback or an error.

    But for an error that is `expected`, by what stands in its line.
    """
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as http:
        endpoint = RestartableProcess(http, state, *arguments, env=env)
        await endpoint.start()
        try:
            yield endpoint
        finally:
            if endpoint.is_running:
                await http.close()
                await endpoint.stop()
    bad = [line for line in endpoint.log if ("Traceback" in line or " error " in line) and expected not in line]
    assert not bad, "".join(endpoint.log)
