"""Starts the processes of servers, and ends them if emceepee cannot. A separate program with only the standard library.

Its standard input is a socket from emceepee. For each server, it receives four descriptors: the server's standard
input, output, and error, and a control socket to emceepee. The guardian forks a copy of itself for them, the server's
keeper. The keeper reads from the control socket what to start, starts it, and reports how it ends. It ends all
remaining processes of the server on request, or when the control socket closes: then emceepee has exited or
crashed.

Keepers are subreapers where the system supports that (Linux): an orphaned process becomes a child of the keeper. So
every process that a server started stays below its keeper, even if it changes its environment, group, or session. The
guardian is a subreaper as well, and ends the processes of a killed keeper.
"""

import ctypes
import gc
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False  # as in typing, but without loading that
if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Callable
else:  # the C modules behind them: the full modules double the startup time, and the first server waits for it
    import _signal as signal
    import _socket as socket

TERM_SECONDS = 1.0  # from SIGTERM to SIGKILL when emceepee is gone
STRAY_SECONDS = 0.5  # the same for the processes of a server that exited by itself
GIVE_UP_SECONDS = 10.0
POLL_SECONDS = 0.02  # needed because the kernel does not report the end of a grandchild
DESCRIPTORS, DESCRIPTOR_BYTES = 4, 4
# The commands of emceepee to a keeper, and the keeper's reports, each with a number.
ASK, END = b"A", b"E"
STARTED, FAILED, EXITED, STRAYS = b"s", b"f", b"x", b"l"
NUMBER_BYTES = 4
HAS_SUBREAPERS = sys.platform == "linux"
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_NO_EXEC_FORMAT = 8  # ENOEXEC: a script without an interpreter line
Specification = tuple[list[bytes], dict[bytes, bytes], bytes | None]  # command, environment, directory


def _system_call() -> "Callable[[int, int], object]":
    """Return `prctl`, looked up once: a lookup in each keeper would copy the memory pages that it touches."""
    if sys.platform != "linux":
        return lambda option, value: None
    found = ctypes.CDLL(None).prctl
    found.argtypes = [ctypes.c_int, ctypes.c_ulong]
    return found


_prctl = _system_call()


def main() -> None:
    gc.disable()  # the guardian creates no garbage, and a collection would make each keeper copy memory pages
    _prctl(_PR_SET_DUMPABLE, 0)  # no server may inspect or control this process
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):  # SIGCHLD: no zombies
        signal.signal(number, signal.SIG_IGN)
    control = socket.socket(fileno=os.dup(0))
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    keepers: set[int] = set()
    while (descriptors := _receive_descriptors(control)) is not None:
        keeper = _fork(descriptors[-1])
        if keeper == 0:
            control.close()
            os._exit(Keeper(descriptors[-1]).run(descriptors[:-1]))
        keepers.add(keeper)
        for descriptor in descriptors:
            os.close(descriptor)
    _end_all(TERM_SECONDS, spared=frozenset(keepers))


def _receive_descriptors(control: socket.socket) -> list[int] | None:
    """Return the descriptors of the next server, or None when emceepee is gone."""
    data, ancillary, _, _ = control.recvmsg(1, socket.CMSG_SPACE(DESCRIPTORS * DESCRIPTOR_BYTES))
    if not data:
        return None
    packed = b"".join(part for _, kind, part in ancillary if kind == socket.SCM_RIGHTS)
    places = range(0, len(packed), DESCRIPTOR_BYTES)
    found = [int.from_bytes(packed[at : at + DESCRIPTOR_BYTES], sys.byteorder) for at in places]
    for descriptor in found:
        os.set_inheritable(descriptor, False)
    return found


def _fork(control: int) -> int:
    """Fork like os.fork. If that fails, report it to emceepee and return -1."""
    try:
        return os.fork()
    except OSError as error:
        _report(control, FAILED, error.errno or 0)
        return -1


class Keeper:
    """Supervises one server, from its start until all its processes have ended."""

    def __init__(self, control: int) -> None:
        self._control = control
        self._server = 0
        self._has_exited = False

    def run(self, descriptors: list[int]) -> int:
        """Run the keeper, and return its exit code."""
        _prctl(_PR_SET_CHILD_SUBREAPER, 1)
        ended = _open_wakeup_pipe()
        try:
            self._server = _spawn(_read_specification(self._control), descriptors)
        except (OSError, EOFError) as error:
            _report(self._control, FAILED, getattr(error, "errno", None) or 0)
            return 1
        for descriptor in descriptors:
            os.close(descriptor)
        _report(self._control, STARTED, self._server)
        command = self._watch(ended)
        grace = TERM_SECONDS if command == b"" else STRAY_SECONDS if self._has_exited else 0.0
        _report(self._control, STRAYS, self._end(grace))
        return 0

    def _watch(self, ended: int) -> bytes:
        """Wait until emceepee requests the end, or is gone. Return its last command."""
        waiting = select.poll()
        waiting.register(ended, select.POLLIN)
        waiting.register(self._control, select.POLLIN)
        while True:
            ready = dict(waiting.poll())
            if ended in ready:
                os.read(ended, 4096)
                self._collect()
            if self._control in ready:
                command = _read(self._control)
                if command != ASK:
                    return command
                if not self._has_exited:
                    _signal_group(self._server, signal.SIGTERM)

    def _end(self, grace: float) -> int:
        return len(_end_all(grace, server=self._server, collect=self._collect) - {self._server})

    def _collect(self) -> bool:
        """Reap all ended processes, and report the server's exit. Return whether any process is left."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self._server:
                self._has_exited = True
                _report(self._control, EXITED, os.waitstatus_to_exitcode(status))


def _read_specification(control: int) -> Specification:
    """Raises: EOFError if emceepee is gone before it sent the specification."""
    data = _read_exactly(control, NUMBER_BYTES)
    specification: Specification = marshal.loads(_read_exactly(control, int.from_bytes(data, "little")))
    return specification


def _read_exactly(control: int, size: int) -> bytes:
    data = b""
    while len(data) < size:
        part = os.read(control, size - len(data))
        if not part:
            raise EOFError
        data += part
    return data


def _spawn(specification: Specification, descriptors: list[int]) -> int:
    """Return the id of the new process, which leads its own session. Raises: OSError."""
    command, environment, folder = specification
    if folder is not None:
        os.chdir(folder)
    actions = [(os.POSIX_SPAWN_DUP2, descriptor, number) for number, descriptor in enumerate(descriptors)]

    def spawn(words: list[bytes]) -> int:
        signals = signal.valid_signals()
        return os.posix_spawn(words[0], words, environment, file_actions=actions, setsid=True, setsigdef=signals)

    try:
        return spawn(command)
    except OSError as error:
        if error.errno != _NO_EXEC_FORMAT:
            raise
        return spawn([b"/bin/sh", *command])


def _open_wakeup_pipe() -> int:
    """Return a descriptor that becomes readable when a child has ended."""
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)  # not SIG_IGN: an ignored signal does not wake the reader
    signal.set_wakeup_fd(wake)
    return ended


def _report(control: int, what: bytes, number: int) -> None:
    try:
        os.write(control, what + number.to_bytes(NUMBER_BYTES, "little", signed=True))
    except OSError:
        return  # emceepee is gone


def _read(control: int) -> bytes:
    try:
        return os.read(control, 1)
    except OSError:
        return b""


# Termination.


def _is_anyone_left() -> bool:
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        return False
    return True


def _end_all(
    grace: float,
    *,
    server: int = 0,
    collect: "Callable[[], bool]" = _is_anyone_left,
    spared: frozenset[int] = frozenset(),
) -> set[int]:
    """Send SIGTERM to all descendants, and SIGKILL after `grace` seconds, until none is left. Return their ids.

    The `spared` processes should end by themselves. They are killed only after GIVE_UP_SECONDS.
    """
    began = time.monotonic()  # noqa: TID251  # a program of its own, with no clock to take
    seen: set[int] = set()
    while (waited := time.monotonic() - began) < GIVE_UP_SECONDS + TERM_SECONDS:  # noqa: TID251  # no clock to take
        number = signal.SIGTERM if waited < grace else signal.SIGKILL
        exempt = spared if waited < GIVE_UP_SECONDS else frozenset()
        found = set(descendants(os.getpid(), exempt)) - exempt
        seen |= found
        for pid in found:
            _signal(pid, number)
        is_group_alive = not HAS_SUBREAPERS and server > 0 and _signal_group(server, number)
        if not collect() and not is_group_alive:
            break
        time.sleep(POLL_SECONDS)  # noqa: TID251  # there is no loop here to block, and no clock to take
    return seen


def descendants(pid: int, spared: frozenset[int] = frozenset()) -> list[int]:
    """Return all descendants of a process, except those below spared ones; none on a system without /proc."""
    found: list[int] = []
    for thread in _list_folder(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            continue  # the process has ended in the meantime
        for child in children:
            found.append(child)
            if child not in spared:
                found += descendants(child, spared)
    return found


def _list_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def _signal(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        return


def _signal_group(group: int, number: int) -> bool:
    """Return False if the group is empty."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
