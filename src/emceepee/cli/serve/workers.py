"""`serve --workers N`: a parent that serves nobody itself. It starts the workers, and again if they die, and ends them.

parent ──┬─▶ worker 0  the same command line, a port that all listen on, and a line to the parent
         ├─▶ worker 1     reports go up it; when it ends, the other side is gone
         └─▶ …

It loads none of what serves callers, so that it is small and has little that could fail.
"""

import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from emceepee.cli.serve.restarts import CANNOT_START, WorkerEnd, is_hopeless, pause_before_restart
from emceepee.cli.serve.worker import FAILED, LINK, LONGEST_REPORT, READY, STOP_SECONDS, WORKER_VARIABLE, read_report
from emceepee.clock import Clock
from emceepee.config.source import RELOAD_SIGNAL
from emceepee.lifecycle import TaskOwner
from emceepee.server.stop_signals import stop_signals
from emceepee.telemetry.logs import EventLog

log = EventLog("workers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcements:
    """What is told to whoever started us."""

    ready: Callable[[str], None]  # once, when all workers are: the address
    link: Callable[[str], None]  # each link to the console
    failed: Callable[[str], None]  # why no worker can start, in a sentence


@dataclass(slots=True, eq=False)
class _Seat:
    """The place of one worker, whose process may change."""

    index: int
    process: asyncio.subprocess.Process | None = None
    starts: int = 0
    is_ready: bool = False

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)


@dataclass(slots=True, eq=False)
class _Told:
    """What the operator was told already."""

    is_ready: bool = False
    links: list[str] = field(default_factory=list)  # that wait until all are ready
    last_link: str = ""
    failures: set[str] = field(default_factory=set)


class WorkerProcesses:
    """`command` is that of one worker."""

    def __init__(self, command: Sequence[str], count: int, announcements: Announcements, clock: Clock) -> None:
        self._command, self._clock, self._announcements = command, clock, announcements
        self._seats = [_Seat(index) for index in range(count)]
        self._told = _Told()
        self._stopping = asyncio.Event()
        self._signals = 0
        self._code = 0

    async def run(self) -> int:
        """Until a signal to stop, or until it turns out that none can start. Returns the exit code."""
        loop, owner = asyncio.get_running_loop(), TaskOwner("workers")
        for number in stop_signals():
            loop.add_signal_handler(number, partial(self._stop, number))
        loop.add_signal_handler(RELOAD_SIGNAL, self._pass_on_reload)
        keeping = [owner.spawn(self._keep(seat), name=str(seat.index)) for seat in self._seats]
        try:
            await self._stopping.wait()
            _, late = await asyncio.wait(keeping, timeout=STOP_SECONDS)
            if late:
                await self._kill_all(late)
            return self._code
        finally:
            await owner.close()

    def _pass_on_reload(self) -> None:
        for seat in self._seats:
            if seat.is_ready:  # before it listens for it, it would end it
                seat.signal(RELOAD_SIGNAL)

    def _stop(self, number: int) -> None:
        """The first is passed on as SIGTERM, which a worker obeys while it still loads; later ones as they are."""
        self._signals += 1
        self._end_all(signal.SIGTERM if self._signals == 1 else number)

    def _end_all(self, number: int) -> None:
        self._stopping.set()
        for seat in self._seats:
            seat.signal(number)

    async def _kill_all(self, late: set[asyncio.Task[None]]) -> None:
        log.warning("workers_killed", count=len(late), after_seconds=STOP_SECONDS)
        self._code = self._code or 1
        for seat in self._seats:
            seat.signal(signal.SIGKILL)
        await asyncio.wait(late, timeout=STOP_SECONDS)

    async def _keep(self, seat: _Seat) -> None:
        """One worker after another, until we stop."""
        pause: float | None = None
        while not self._stopping.is_set():
            end = await self._run_once(seat)
            if self._stopping.is_set():
                return
            if is_hopeless(end, all_were_ready=self._told.is_ready):
                self._code = CANNOT_START
                self._end_all(signal.SIGTERM)
                return
            pause = pause_before_restart(end, pause)
            log.warning("worker_ended", worker=seat.index, code=end.code, restart_seconds=pause)
            await self._pause(pause)

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    async def _run_once(self, seat: _Seat) -> WorkerEnd:
        began = self._clock.monotonic()
        seat.is_ready = False
        seat.starts += 1
        try:
            code = await self._run_process(seat)
        except OSError as error:  # the system has no room for another process, or no descriptor is left
            log.warning("worker_not_started", worker=seat.index, error=str(error))
            code = 1
        return WorkerEnd(code=code, ran_seconds=self._clock.monotonic() - began, was_ready=seat.is_ready)

    async def _run_process(self, seat: _Seat) -> int:
        """The exit code. Raises: OSError."""
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours, limit=LONGEST_REPORT)
        try:
            with theirs:
                seat.process = process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.DEVNULL,
                    env=os.environ | {WORKER_VARIABLE: f"{seat.index}:{theirs.fileno()}"},
                    pass_fds=[theirs.fileno()],
                    process_group=0,  # a terminal's Ctrl-C reaches the parent alone, which passes it on
                )
            if self._stopping.is_set():
                seat.signal(signal.SIGTERM)
            async for kind, text in reports(reader, seat.index):
                self._hear(seat, kind, text)
            return await process.wait()
        finally:
            writer.close()

    def _hear(self, seat: _Seat, kind: str, text: str) -> None:
        told, say = self._told, self._announcements
        if kind == READY:
            seat.is_ready = True
            if seat.starts > 1:
                log.info("worker_restarted", worker=seat.index)
            if not told.is_ready and all(each.is_ready for each in self._seats):
                told.is_ready = True
                say.ready(text)
        elif kind == LINK:
            told.links.append(text)
        elif kind == FAILED and text not in told.failures:
            told.failures.add(text)
            say.failed(text)
        while told.is_ready and told.links:
            link = told.links.pop(0)
            if link != told.last_link:
                told.last_link = link
                say.link(link)


async def reports(reader: asyncio.StreamReader, worker: int) -> AsyncIterator[tuple[str, str]]:
    """Until the worker's end of the line is closed. A line that is no report must not end all other workers."""
    is_logged = False
    while True:
        try:
            line = await reader.readline()
        except ValueError:  # longer than any report; what was read of it is gone
            report = None
        else:
            if not line:
                return
            report = read_report(line)
        if report is not None:
            yield report
        elif not is_logged:
            is_logged = True
            log.warning("worker_report_unreadable", worker=worker)


def reserve_port(host: str, port: int) -> socket.socket:
    """Bound, so that the port stays the workers' even while none listens. Raises: OSError if it is another's."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if port:
        # Whoever shares its port, as the workers of another parent do, would share it with ours too.
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    reserved = socket.socket(family, socket.SOCK_STREAM)
    try:
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        reserved.bind((host, port))
    except BaseException:
        reserved.close()
        raise
    return reserved
