"""One child process: its pipes, its exit, and the termination of everything it started."""

import asyncio
import os
import signal
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from emceepee.backends.link import LinkError, LinkFailure
from emceepee.backends.process.child_processes import ChildProcesses
from emceepee.backends.process.guardian import STRAY_SECONDS
from emceepee.backends.process.kept_process import KeptProcess
from emceepee.backends.process.search_path import find_program
from emceepee.backends.process.stderr_lines import StderrLines
from emceepee.backends.spec import StdioTarget
from emceepee.clock import Clock, Handle, within
from emceepee.futures import resolve
from emceepee.lifecycle import close_bounded
from emceepee.wire.json_types import JsonObject
from emceepee.wire.line_splitter import LineSplitter, TooLongLine

# The environment variables that a child inherits: enough to find programs, caches, certificates, and a proxy. Secrets
# are passed by name in the server's own `env`.
INHERITED = (
    *("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE"),
    *("HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy"),
)

STDIN_GRACE = 1.5  # a well-behaved server exits when its input ends
TERM_GRACE = 1.0  # then it gets SIGTERM; both graces together stay under the 4 s that callers allow
KILL_GRACE = STRAY_SECONDS + 2.0  # then SIGKILL; stray processes and the kernel may need time
STOP_SECONDS = STDIN_GRACE + TERM_GRACE + KILL_GRACE
DRAIN_SECONDS = 0.3  # a dead child's last output is still in the pipe; a grandchild may hold the pipe open forever
EXIT_SECONDS = 1.0  # a child that closed its output is about to exit; its exit code arrives late on a busy machine
STDERR_LINE_BYTES = 64 << 10
_STDERR_MARK = "; its stderr"

OnLine = Callable[[bytes | TooLongLine], None]


class Child(asyncio.SubprocessProtocol):
    """A started process. `ended` resolves with a sentence once no more output can arrive."""

    def __init__(
        self,
        command: str,
        clock: Clock,
        *,
        on_line: OnLine,
        on_stderr: Callable[[str], None],
        longest: int,
    ) -> None:
        self._command, self._clock = command, clock
        self._on_line, self._on_stderr = on_line, on_stderr
        self._lines = LineSplitter(longest)
        self._stderr_lines = LineSplitter(STDERR_LINE_BYTES)
        self._open_pipes = {1, 2}
        self._loop = asyncio.get_running_loop()
        self._transport: KeptProcess | None = None
        self._stdin: asyncio.WriteTransport | None = None
        self._writable: asyncio.Future[None] | None = None  # set while the pipe is full
        self._end_timer: Handle | None = None
        self.exited: asyncio.Future[int] = self._loop.create_future()
        self.ended: asyncio.Future[str] = self._loop.create_future()
        self.stderr = StderrLines()
        self.pid = 0

    @property
    def exit_code(self) -> int | None:
        return self.exited.result() if self.exited.done() else None

    # Callbacks of asyncio.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(KeptProcess, transport)
        self._stdin = cast(asyncio.WriteTransport, self._transport.get_pipe_transport(0))
        self.pid = self._transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 1:
            for line in self._lines.feed(data):
                self._on_line(line)
        else:
            for line in self._stderr_lines.feed(data):
                self._handle_stderr_line(line)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        if fd == 0:
            self._stdin = None
            self._release_writers()
            return
        if fd == 2 and (rest := self._stderr_lines.rest()):
            self._handle_stderr_line(rest)
        elif fd == 1 and (rest := self._lines.rest()):
            self._on_line(rest)
        self._open_pipes.discard(fd)
        self._check_end()

    def process_exited(self) -> None:
        assert self._transport is not None  # it exited, so it was connected
        code = self._transport.get_returncode()
        resolve(self.exited, code if code is not None else -1)
        self._check_end()

    def pause_writing(self) -> None:
        if self._writable is None:
            self._writable = self._loop.create_future()

    def resume_writing(self) -> None:
        self._release_writers()

    def _release_writers(self) -> None:
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._writable = None

    def _handle_stderr_line(self, line: bytes | TooLongLine) -> None:
        if isinstance(line, TooLongLine):
            text = f"(a line over {STDERR_LINE_BYTES} bytes)"
        else:
            text = line.decode("utf-8", "replace")
        self.stderr.append(text)
        self._on_stderr(text)

    def _check_end(self) -> None:
        if self.ended.done():
            return
        if self.exited.done() and not self._open_pipes:
            self._end()
        elif self.exited.done() or 1 not in self._open_pipes:
            if self._end_timer is not None:
                self._end_timer.cancel()
            delay = DRAIN_SECONDS if self.exited.done() else EXIT_SECONDS
            self._end_timer = self._clock.call_later(delay, self._end)

    def _end(self) -> None:
        if self._end_timer is not None:
            self._end_timer.cancel()  # a pending timer would keep this object and the unread input alive
            self._end_timer = None
        if not self.ended.done():
            self.ended.set_result(self.describe_end())
            # Release waiting writers: a grandchild may hold the pipe open without reading.
            self._release_writers()

    # Operations on the process.

    async def write(self, data: bytes) -> None:
        """Wait until the child can accept input, then write. Raises: LinkError if it has stopped reading."""
        while self._writable is not None:
            await asyncio.shield(self._writable)
        if self._stdin is not None and self._stdin.is_closing():  # the pipe broke, and the callback is still pending
            self._stdin = None
        if self._stdin is None and not self.ended.done():
            with suppress(TimeoutError):  # it has probably just exited: wait for its exit code
                await within(self._clock, EXIT_SECONDS + DRAIN_SECONDS, self.ended)
        if self._stdin is None or self.ended.done():
            raise LinkError(LinkFailure.CLOSED, self.describe_end(), may_have_run=False)
        self._stdin.write(data)

    def pause_reading(self) -> None:
        """Backpressure: the process blocks as soon as its output has filled the pipe."""
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if self._transport is not None:
            self._transport.resume_reading()

    def describe_end(self) -> str:
        """Describe the end for a person: exit code or signal, and an excerpt of stderr."""
        code = self.exit_code
        if code is None:
            how = "closed its standard input or output"
        elif code < 0:
            how = f"was ended by signal {-code} ({_signal_name(-code)})"
        else:
            how = f"exited with code {code}"
        return f"{self._command} {how}; {self.stderr.sentence()}"

    def facts(self) -> JsonObject:
        """Return the process data for events and status replies."""
        facts: JsonObject = {"pid": self.pid}
        code = self.exit_code
        if code is None:
            return facts
        facts |= {"exitCode": code} if code >= 0 else {"signal": _signal_name(-code)}
        return facts | {"stderrTail": self.stderr.excerpt()}

    async def stop(self) -> None:
        """End the process and everything that it started. Return when they are gone."""
        await close_bounded(self._stop(), within=STOP_SECONDS, what=f"process {self.pid}")

    async def _stop(self) -> None:
        if self._stdin is not None:
            self._stdin.close()
        process = self._transport
        if process is not None:
            if not await self._within(STDIN_GRACE, self.exited):
                process.terminate()
                await self._within(TERM_GRACE, self.exited)
            process.kill()
            await self._within(KILL_GRACE, process.gone)
            process.close()
        self._end()

    async def _within(self, seconds: float, future: "asyncio.Future[Any]") -> bool:
        try:
            await within(self._clock, seconds, future)
        except TimeoutError:
            return False
        return True


async def start_child(
    target: StdioTarget,
    clock: Clock,
    child_processes: ChildProcesses,
    *,
    on_line: OnLine,
    on_stderr: Callable[[str], None],
    longest: int,
) -> Child:
    """Start a process in its own process group.

    Raises:
        LinkError: it could not be started.
    """
    environment = child_environment(target.env, os.environ)
    program = _program(target, environment)
    child = Child(target.command, clock, on_line=on_line, on_stderr=on_stderr, longest=longest)
    starting = asyncio.ensure_future(
        child_processes.start(child, [program, *target.args], environment=environment, cwd=target.cwd)
    )
    try:
        await asyncio.shield(starting)
    except asyncio.CancelledError:
        unwanted = _stop_unwanted(starting, child)
        await close_bounded(unwanted, within=STOP_SECONDS + 1, what=f"{target.command}, no longer wanted")
        raise
    except (OSError, ValueError) as error:
        raise LinkError(LinkFailure.UNREACHABLE, f"{target.command} could not be started: {error}") from error
    return child


async def _stop_unwanted(starting: "asyncio.Future[None]", child: Child) -> None:
    """Stop a process whose caller left during the start. Wait until it has started first."""
    with suppress(OSError, ValueError):
        await starting
        await child.stop()


def without_stderr(reason: str) -> str:
    """Return how a process ended, without its stderr, which may contain secrets."""
    return reason.partition(_STDERR_MARK)[0]


def child_environment(own: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    return {name: ours[name] for name in INHERITED if name in ours} | dict(own)


def _program(target: StdioTarget, environment: Mapping[str, str]) -> str:
    if target.cwd is not None and not Path(target.cwd).is_dir():
        raise LinkError(LinkFailure.UNREACHABLE, f"the working directory {target.cwd} does not exist")
    if os.sep in target.command:
        return target.command
    found = find_program(target.command, environment.get("PATH"))
    if found is None:
        raise LinkError(LinkFailure.UNREACHABLE, f"there is no program {target.command!r} on the PATH")
    return found


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
