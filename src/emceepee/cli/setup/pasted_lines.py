"""Read lines that a user types or pastes, concurrently with other work."""

import asyncio
import os
import sys
import termios
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

from emceepee.cli.serve.process_setup import STDIN, STDOUT

LONGEST_LINE = 64 << 10
READ_BYTES = 4096
BACKSPACES, CLEAR_LINE, END = (b"\x7f", b"\x08"), b"\x15", b"\x04"
_LOCAL_MODES = 3  # their index in the list that termios returns


class LineAssembler:
    """Assembles bytes into lines.

    `echo` collects output for editing keys, which the terminal no longer handles.
    """

    def __init__(self, *, is_terminal: bool = False) -> None:
        self._line, self._is_terminal = bytearray(), is_terminal
        self.echo = bytearray()
        self.has_ended = False

    def feed(self, data: bytes) -> list[str]:
        lines = []
        for byte in (data[at : at + 1] for at in range(len(data))):
            if byte == b"\n" or (byte == END and self._is_terminal):
                lines.append(self._line.decode("utf-8", "replace").strip())
                self._line.clear()
                self.has_ended |= byte == END
            elif self._is_terminal and byte in BACKSPACES:
                self._erase(1)
            elif self._is_terminal and byte == CLEAR_LINE:
                self._erase(len(self._line))
            elif len(self._line) < LONGEST_LINE:
                self._line += byte
        return [line for line in lines if line]

    def end(self) -> list[str]:
        """Return the last line, which has no line break."""
        self.has_ended = True
        return self.feed(b"\n")

    def _erase(self, count: int) -> None:
        count = min(count, len(self._line))
        del self._line[len(self._line) - count :]
        self.echo += b"\b \b" * count


class PastedLines:
    """The lines of standard input. After the last one, `next` waits forever, so that other work can continue."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[str] = asyncio.Queue()

    async def next(self) -> str:
        return await self._queue.get()

    @classmethod
    @contextmanager
    def reading(cls) -> "Iterator[PastedLines]":
        lines = cls()
        is_terminal = _is_our_terminal()
        with _taking_long_lines() if is_terminal else nullcontext():
            # A thread, because regular files do not support polling; a daemon, because nothing interrupts its read.
            reader = threading.Thread(target=lines._read, args=(is_terminal,), name="emceepee-stdin", daemon=True)
            reader.start()
            yield lines

    def _read(self, is_terminal: bool) -> None:
        assembler = LineAssembler(is_terminal=is_terminal)
        with suppress(OSError, RuntimeError):  # input was closed, or the event loop has ended
            while not assembler.has_ended:
                data = os.read(STDIN, READ_BYTES)
                for line in assembler.feed(data) if data else assembler.end():
                    self._loop.call_soon_threadsafe(self._queue.put_nowait, line)
                if assembler.echo:
                    os.write(STDOUT, bytes(assembler.echo))
                    assembler.echo.clear()


def _is_our_terminal() -> bool:
    """Return whether standard input is a terminal with this process in the foreground."""
    if not os.isatty(STDIN):
        return False
    with suppress(OSError):  # the terminal is not the controlling terminal
        return os.tcgetpgrp(STDIN) == os.getpgrp()
    return True


@contextmanager
def _taking_long_lines() -> Iterator[None]:
    """Turn off the terminal's line editing, which cuts lines after 1024 or 4096 characters: URLs can be longer."""
    before = termios.tcgetattr(STDIN)
    changed = termios.tcgetattr(STDIN)
    changed[_LOCAL_MODES] &= ~termios.ICANON
    termios.tcsetattr(STDIN, termios.TCSANOW, changed)
    try:
        yield
    finally:
        sys.stdout.flush()
        termios.tcsetattr(STDIN, termios.TCSANOW, before)
