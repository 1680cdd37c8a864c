"""Starts the processes of servers, and ends them if emceepee cannot. A program of its own, standard library only.

Its standard input is a socket from emceepee. For each server it is sent four descriptors: what the server shall have as
standard input, output and error, and a control socket to emceepee. A copy of the guardian, the server's keeper, is made
for them. The keeper reads from the control socket what to start, starts it, reports how it ends, and ends whatever is
left of it when it is asked to, or when the control socket closes: then emceepee is gone, however it went.

Keepers are subreapers, where there is such a thing (Linux): who loses its parent becomes a child of the keeper. So
every process that a server started is below its keeper, whatever it does to its environment, its group or its session.
The guardian is a subreaper too, and ends what a keeper that was killed has left.
"""

import ctypes
import gc
import marshal
import os
import select
import sys
import time

TYPE_CHECKING = False  # as in typing, which would be loaded for it
if TYPE_CHECKING:
    import signal
    import socket
    from collections.abc import Callable
else:  # what those two stand on: with them it starts in twice the time, and the first server waits for it
    import _signal as signal
    import _socket as socket

TERM_SECONDS = 1.0  # between asking and making, when emceepee is gone
STRAY_SECONDS = 0.5  # the same for what a server left behind that has ended by itself
GIVE_UP_SECONDS = 10.0
POLL_SECONDS = 0.02  # the kernel tells nobody of the end of a grandchild
DESCRIPTORS, DESCRIPTOR_BYTES = 4, 4
# The commands of emceepee to a keeper, and the reports of a keeper, each with a number.
ASK, END = b"A", b"E"
STARTED, FAILED, EXITED, STRAYS = b"s", b"f", b"x", b"l"
NUMBER_BYTES = 4
HAS_SUBREAPERS = sys.platform == "linux"
_PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 4, 36
_NO_EXEC_FORMAT = 8  # ENOEXEC: a script that does not say what runs it
Specification = tuple[list[bytes], dict[bytes, bytes], bytes | None]  # the command, its environment, its directory


def _system_call() -> "Callable[[int, int], object]":
    """`prctl`, found once: each keeper that looks for it anew has its own copies of what it looks through."""
    if sys.platform != "linux":
        return lambda option, value: None
    found = ctypes.CDLL(None).prctl
    found.argtypes = [ctypes.c_int, ctypes.c_ulong]
    return found


_prctl = _system_call()


def main() -> None:
    gc.disable()  # nothing here is garbage, and walking over memory would make copies of it in each keeper
    _prctl(_PR_SET_DUMPABLE, 0)  # a server may not look into us, or make us do things
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD):  # the last: who ends leaves nothing
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
    """The descriptors of the next server; None when emceepee is gone."""
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
    """As os.fork; if there can be no further process, emceepee is told."""
    try:
        return os.fork()
    except OSError as error:
        _report(control, FAILED, error.errno or 0)
        return -1


class Keeper:
    """Stays with one server, from its start until nobody of it is left."""

    def __init__(self, control: int) -> None:
        self._control = control
        self._server = 0
        self._has_exited = False

    def run(self, descriptors: list[int]) -> int:
        """Returns the exit code."""
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
        """Until emceepee wants the end, or is gone; its last command."""
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
        """Reap all who have ended, and report the server's exit; whether anyone is left."""
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
    """Raises: EOFError if emceepee is gone before it said what to start."""
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
    """The id of the new process, which leads a session of its own. Raises: OSError."""
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
    """A descriptor that can be read when a child has ended."""
    ended, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)  # not ignored: that would wake nobody
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


# The end.


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
    """Ask everyone below us to end, make them after `grace` seconds, until nobody is left; who they were.

    Those who are `spared` end by themselves, unless they do not.
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
    """All processes below one, but not below those who are spared; none where there is no /proc."""
    found: list[int] = []
    for thread in _list_folder(f"/proc/{pid}/task"):
        try:
            with open(f"/proc/{pid}/task/{thread}/children", "rb") as file:
                children = [int(word) for word in file.read().split()]
        except OSError:
            continue  # gone meanwhile
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
    """False if nobody is in it."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


if __name__ == "__main__":
    main()
