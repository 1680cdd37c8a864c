"""`serve --workers N`: a parent process that starts the workers, restarts them if they die, and stops them.

parent ──┬─▶ worker 0  the same command line, a shared port, and a socket to the parent
         ├─▶ worker 1     it carries reports; when it closes, the other process is gone
         └─▶ …

The parent loads none of the serving code, so it is small and little in it can fail.
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
    """Callbacks that report to the operator."""

    ready: Callable[[str], None]  # once, with the address, when all workers are ready
    link: Callable[[str], None]  # for each link to the console
    failed: Callable[[str], None]  # with the reason why no worker can start


@dataclass(slots=True, eq=False)
class _Seat:
    """A worker's slot. Each restart replaces its process."""

    index: int
    process: asyncio.subprocess.Process | None = None
    starts: int = 0
    is_ready: bool = False

    def signal(self, number: int) -> None:
        if self.process is not None and self.process.returncode is None:
            self.process.send_signal(number)


@dataclass(slots=True, eq=False)
class _Told:
    """Events that were already reported to the operator."""

    is_ready: bool = False
    links: list[str] = field(default_factory=list)  # deferred until all workers are ready
    last_link: str = ""
    failures: set[str] = field(default_factory=set)


class WorkerProcesses:
    """Supervises the workers. `command` starts one worker."""

    def __init__(self, command: Sequence[str], count: int, announcements: Announcements, clock: Clock) -> None:
        self._command, self._clock, self._announcements = command, clock, announcements
        self._seats = [_Seat(index) for index in range(count)]
        self._told = _Told()
        self._stopping = asyncio.Event()
        self._signals = 0
        self._code = 0

    async def run(self) -> int:
        """Run until a stop signal, or until no worker can start. Return the exit code."""
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
            if seat.is_ready:  # before a worker handles this signal, the signal would kill it
                seat.signal(RELOAD_SIGNAL)

    def _stop(self, number: int) -> None:
        """Forward the first signal as SIGTERM, which works even while a worker loads; forward later ones unchanged."""
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
        """Run a worker and restart it until shutdown."""
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
        except OSError as error:  # too many processes or open files
            log.warning("worker_not_started", worker=seat.index, error=str(error))
            code = 1
        return WorkerEnd(code=code, ran_seconds=self._clock.monotonic() - began, was_ready=seat.is_ready)

    async def _run_process(self, seat: _Seat) -> int:
        """Return the exit code. Raises: OSError."""
        ours, theirs = socket.socketpair()
        reader, writer = await asyncio.open_connection(sock=ours, limit=LONGEST_REPORT)
        try:
            with theirs:
                seat.process = process = await asyncio.create_subprocess_exec(
                    *self._command,
                    stdin=asyncio.subprocess.DEVNULL,
                    env=os.environ | {WORKER_VARIABLE: f"{seat.index}:{theirs.fileno()}"},
                    pass_fds=[theirs.fileno()],
                    process_group=0,  # Ctrl-C in a terminal reaches only the parent, which forwards it
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
    """Yield reports until the worker closes its end. Skip malformed lines: one must not stop all other workers."""
    is_logged = False
    while True:
        try:
            line = await reader.readline()
        except ValueError:  # longer than any valid report; the reader has discarded the data
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
    """Bind the port so that it stays reserved even while no worker listens. Raises: OSError if it is in use."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    if port:
        # SO_REUSEPORT alone would share the port with another parent's workers. This probe detects them.
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
