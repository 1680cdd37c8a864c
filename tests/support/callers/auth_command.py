"""`emceepee auth` as a person runs it: at a terminal, or from a script."""

import asyncio
import codecs
import fcntl
import json
import os
import pty
import signal
import sys
import termios
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

BOUND = 60.0


class Terminal:
    """A program at a terminal. `shown` is everything that was on the screen."""

    def __init__(self, process: asyncio.subprocess.Process, master: int) -> None:
        self.process, self._master = process, master
        self.shown, self._is_gone = "", False
        self._changed = asyncio.Event()
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end within a character
        asyncio.get_running_loop().add_reader(master, self._read)

    async def until(self, words: str) -> str:
        """Everything that is shown, as soon as these words are."""
        await self._wait(lambda: words in self.shown)
        return self.shown

    async def line(self, beginning: str) -> str:
        """The first line that begins with this, apart from spaces."""

        def found() -> list[str]:
            whole = self.shown.replace("\r", "").split("\n")[:-1]
            return [line.strip() for line in whole if line.strip().startswith(beginning)]

        await self._wait(lambda: bool(found()))
        return found()[0]

    def type(self, text: str) -> None:
        """Waits until the program has read most of it."""
        os.write(self._master, text.encode())

    async def end(self) -> int:
        """The exit code."""
        async with asyncio.timeout(BOUND):
            code = await self.process.wait()
            while not self._is_gone:
                self._changed.clear()
                await self._changed.wait()
        return code

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)

    async def _wait(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(BOUND):
            while not condition():
                assert not self._is_gone, f"it ended: {self.shown}"
                self._changed.clear()
                await self._changed.wait()

    def _read(self) -> None:
        try:
            self.shown += self._decoder.decode(os.read(self._master, 1 << 16))
        except OSError:  # nobody has the other end any more
            self._is_gone = True
            asyncio.get_running_loop().remove_reader(self._master)
        self._changed.set()


@dataclass(frozen=True, kw_only=True)
class AuthCommand:
    """On one state directory, and on one configuration if there is one."""

    state: Path
    config: Path | None = None
    flags: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()

    def _command(self, words: tuple[str, ...]) -> list[str]:
        config = () if self.config is None else ("--config", str(self.config))
        return [sys.executable, "-m", "emceepee", "auth", *words, *config, *self.flags]

    @property
    def _environment(self) -> dict[str, str]:
        kept = {name: text for name, text in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
        return {**kept, "XDG_STATE_HOME": str(self.state), "SSH_CONNECTION": "there here", **dict(self.env)}

    async def start(self, *words: str) -> asyncio.subprocess.Process:
        """Without anything on its standard input."""
        return await asyncio.create_subprocess_exec(
            *self._command(words),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=self._environment,
        )

    async def run(self, *words: str) -> tuple[int | None, str, str]:
        """Return the exit code, the output, and the error output."""
        process = await self.start(*words)
        out, err = await asyncio.wait_for(process.communicate(), BOUND)
        return process.returncode, out.decode(), err.decode()

    async def facts(self, *words: str) -> Any:
        code, out, err = await self.run(*words, "--json")
        assert code == 0, err
        return json.loads(out)

    @asynccontextmanager
    async def at_terminal(self, *words: str) -> AsyncIterator[Terminal]:
        async with at_terminal(self._command(words), self._environment) as terminal:
            yield terminal


def _take_terminal() -> None:
    """Make Ctrl-C reach the command even where the tests run as a background job, which ignores SIGINT."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


@asynccontextmanager
async def at_terminal(
    command: list[str], environment: dict[str, str], *, folder: Path | None = None
) -> AsyncIterator[Terminal]:
    """A program at a terminal of its own; it is ended if the test has not ended it."""
    master, slave = pty.openpty()
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=folder,
        env=environment,
        start_new_session=True,
        preexec_fn=_take_terminal,
    )
    os.close(slave)
    terminal = Terminal(process, master)
    try:
        yield terminal
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()
        terminal.close()
