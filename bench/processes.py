"""Children of the benchmark: each leads a process group of its own, and none outlives it."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from emceepee.cli.serve.process_setup import TRACEABLE_VARIABLE

ROOT = Path(__file__).parents[1]
STOP_SECONDS = 5.0  # from a polite end to a hard one
LAST_WORDS = 2000  # characters of a child's stderr that are worth showing
_NANOSECONDS = 1e9


class _Cores:
    """Contestants get the last core and everything else the first, if that was asked for and there are two.

    Without it the scheduler moves three processes over two cores as it likes, and one caller's median is one of two
    numbers, depending on who shared a core with whom.
    """

    def __init__(self) -> None:
        self._last: int | None = None
        self.ours: int | None = None

    def divide(self) -> None:
        ours = sorted(os.sched_getaffinity(0))
        if len(ours) > 1:
            self.ours, self._last = ours[0], ours[-1]
            os.sched_setaffinity(0, {self.ours})

    @contextmanager
    def join(self) -> Iterator[None]:
        """Allow every process on every core inside the block: for contestants with several processes."""
        before = os.sched_getaffinity(0)
        ours, last, self.ours, self._last = self.ours, self._last, None, None
        if ours is not None and last is not None:
            os.sched_setaffinity(0, {ours, last})
        try:
            yield
        finally:
            os.sched_setaffinity(0, before)
            self.ours, self._last = ours, last

    def give_the_last(self, pid: int) -> None:
        if self._last is not None:
            os.sched_setaffinity(pid, {self._last})


_cores = _Cores()
divide_cores = _cores.divide
on_all_cores = _cores.join


class _Load:
    """Every process that is no contestant: the callers, and helpers such as the backend."""

    def __init__(self) -> None:
        self._helpers: set[int] = set()

    @contextmanager
    def helper(self, pid: int) -> Iterator[None]:
        self._helpers.add(pid)
        try:
            yield
        finally:
            self._helpers.discard(pid)

    @contextmanager
    def waiting_its_turn(self) -> Iterator[None]:
        """Run on the same cores as the contestants inside the block, without interrupting them.

        By default, a woken process interrupts a running one. With callers and backend on the cores of two workers,
        that was seen to happen 1.2 times per call; with a core to spare, as beside one worker, never.
        """
        self._set_policy(os.SCHED_BATCH)
        try:
            yield
        finally:
            self._set_policy(os.SCHED_OTHER)

    def _set_policy(self, policy: int) -> None:
        for pid in (0, *self._helpers):
            os.sched_setscheduler(pid, policy, os.sched_param(0))


_load = _Load()
load_waiting_its_turn = _load.waiting_its_turn


def our_core() -> tuple[str, ...]:
    """For the command line of a backend that a contestant starts: the core that it is to move to."""
    return () if _cores.ours is None else (str(_cores.ours),)


@dataclass(frozen=True, slots=True)
class Launch:
    """A command, and what it needs besides."""

    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)


class Child:
    """A running process and what it costs."""

    def __init__(self, process: subprocess.Popen[bytes], said: Path) -> None:
        self.process, self._said = process, said

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_running(self) -> bool:
        return self.process.poll() is None

    def last_words(self) -> str:
        return self._said.read_text("utf-8", "replace")[-LAST_WORDS:]

    def cpu_seconds(self) -> float:
        """Of all its threads, and those of its workers. The scheduler counts nanoseconds where /proc/PID/stat counts
        hundredths of seconds."""
        return sum(_spent(pid) for pid in (self.pid, *_children(self.pid))) / _NANOSECONDS

    def private_bytes(self) -> int:
        """Memory that is its alone: what would be free without it."""
        return self._memory("Private_")

    def resident_bytes(self) -> int:
        """Return the memory including shared libraries, as most programs show it."""
        return self._memory("Rss:")

    def _memory(self, kind: str) -> int:
        lines = Path(f"/proc/{self.pid}/smaps_rollup").read_text().splitlines()
        return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(kind))


def _spent(pid: int) -> int:
    spent = 0
    with suppress(OSError):  # it, or one of its threads, has ended
        for thread in Path(f"/proc/{pid}/task").iterdir():
            spent += int((thread / "schedstat").read_text().split()[0])
    return spent


def _children(pid: int) -> list[int]:
    with suppress(OSError):
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    return []


@contextmanager
def running(launch: Launch, *, pipes: bool = False, beside_us: bool = False) -> Iterator[Child]:
    """The process while it is needed. With `pipes`, its standard input and output are ours."""
    with tempfile.TemporaryDirectory(prefix="bench-") as place:
        said = Path(place) / "stderr"
        with said.open("wb") as stderr:
            process = subprocess.Popen(
                launch.command,
                stdin=subprocess.PIPE if pipes else subprocess.DEVNULL,
                stdout=subprocess.PIPE if pipes else subprocess.DEVNULL,
                stderr=stderr,
                bufsize=0,
                start_new_session=True,
                env={**os.environ, TRACEABLE_VARIABLE: "1", **launch.environment},  # the benchmark reads its memory
            )
        try:
            if beside_us:
                with _load.helper(process.pid):
                    yield Child(process, said)
            else:
                _cores.give_the_last(process.pid)
                yield Child(process, said)
        finally:
            _stop(process)


@asynccontextmanager
async def running_meanwhile(launch: Launch) -> AsyncIterator[Child]:
    """As `running`, for a program whose own loop must go on while the child ends."""
    with ExitStack() as stack:
        child = stack.enter_context(running(launch))
        rest = stack.pop_all()
    try:
        yield child
    finally:
        await asyncio.to_thread(rest.close)


@contextmanager
def printing_its_port(launch: Launch) -> Iterator[int]:
    """A helper of ours, such as the backend: it shares our core."""
    with running(launch, pipes=True, beside_us=True) as child:
        assert child.process.stdout is not None
        line = child.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{launch.command} did not start: {child.last_words()}")
        yield int(line)


def _stop(process: subprocess.Popen[bytes]) -> None:
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            pipe.close()
    with suppress(ProcessLookupError):
        process.terminate()
    with suppress(subprocess.TimeoutExpired):
        process.wait(STOP_SECONDS)
    with suppress(ProcessLookupError):  # also when it ended: what it started may not have
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def module(name: str, *arguments: str, quick: bool = False) -> Launch:
    """A module of the benchmark. `quick` leaves out everything but the standard library."""
    flags = ("-S",) if quick else ()
    return Launch((sys.executable, *flags, "-m", name, *arguments), source_tree())


def source_tree() -> dict[str, str]:
    """Lets a child find the benchmark, and the emceepee of this checkout."""
    places = [str(ROOT), str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {"PYTHONPATH": os.pathsep.join(places)}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def end_in_order_when_asked() -> None:
    """SIGTERM unwinds as Ctrl-C does, so that every child is stopped."""

    def unwind(signum: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, unwind)
