"""All processes that emceepee started. A guardian process supervises them and outlives emceepee."""

import asyncio
import marshal
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, suppress
from pathlib import Path

from emceepee.backends.process import guardian
from emceepee.backends.process.kept_process import GuardianLost, KeptProcess, SocketPairs

SLACK_SECONDS = 2.0  # on a busy machine, in addition to the guardian's own timeouts
MOST_AT_ONCE = 32  # starts in progress: the guardian's socket holds only some hundred descriptors


class ChildProcesses:
    """The child processes of an installation.

    The guardian starts with the first child, so that a mere probe of emceepee starts no process.
    """

    def __init__(self) -> None:
        self._guardian: asyncio.subprocess.Process | None = None
        self._socket: socket.socket | None = None
        self._processes: set[KeptProcess] = set()
        self._connecting = asyncio.Lock()
        self._starting = asyncio.Semaphore(MOST_AT_ONCE)

    async def start(
        self,
        protocol: asyncio.SubprocessProtocol,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        cwd: str | None,
    ) -> None:
        """Start a process as leader of its own session. `protocol` gets its transport and all its events.

        Raises:
            OSError, ValueError: it could not be started.
        """
        specification = _specification(command, environment, cwd)
        async with self._starting:
            try:
                await self._start(protocol, specification)
            except GuardianLost:  # the guardian has just ended; the retry starts a new one
                await self._start(protocol, specification)

    async def _start(self, protocol: asyncio.SubprocessProtocol, specification: bytes) -> None:
        guardian_socket = await self._connect_guardian()
        with closing(SocketPairs()) as pairs:
            process = KeptProcess(protocol)
            self._processes.add(process)
            process.gone.add_done_callback(lambda _: self._processes.discard(process))
            try:
                pairs.send(guardian_socket)
                await process.start(pairs, specification)
            except GuardianLost:
                self._processes.discard(process)
                if self._socket is guardian_socket:
                    self._disconnect_guardian()
                raise

    async def _connect_guardian(self) -> socket.socket:
        """Return the socket to a live guardian."""
        async with self._connecting:
            if self._socket is None or not self._has_guardian():
                self._disconnect_guardian()
                ours, theirs = socket.socketpair()
                with theirs:
                    self._guardian = await asyncio.create_subprocess_exec(
                        *(sys.executable, "-I", "-S", _program()),
                        stdin=theirs.fileno(),
                        stdout=asyncio.subprocess.DEVNULL,
                        start_new_session=True,
                        env={},
                    )
                self._socket = ours
            return self._socket

    def _has_guardian(self) -> bool:
        """Return whether the guardian is alive. The exit of one that has just ended may not be reported yet."""
        process = self._guardian
        return process is not None and process.returncode is None and not _is_zombie(process.pid)

    async def close(self) -> None:
        """Kill the remaining processes, and make the guardian exit, which ends any process that is left."""
        for member in list(self._processes):
            member.kill()
            member.close()
        process, self._guardian = self._guardian, None
        self._disconnect_guardian()
        if process is not None:
            with suppress(TimeoutError):
                async with asyncio.timeout(guardian.GIVE_UP_SECONDS + guardian.TERM_SECONDS + SLACK_SECONDS):
                    await process.wait()

    def _disconnect_guardian(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None


def _specification(command: Sequence[str], environment: Mapping[str, str], cwd: str | None) -> bytes:
    texts = [*command, *environment, *environment.values(), cwd or ""]
    if any("\0" in text for text in texts):
        raise ValueError("embedded null byte")
    if any(not name or "=" in name for name in environment):
        raise ValueError("illegal environment variable name")
    data = marshal.dumps(
        (
            [os.fsencode(word) for word in command],
            {os.fsencode(name): os.fsencode(text) for name, text in environment.items()},
            None if cwd is None else os.fsencode(cwd),
        )
    )
    return len(data).to_bytes(guardian.NUMBER_BYTES, "little") + data


def _program() -> str:
    """Return the guardian's program, compiled if possible, because the first server waits until it has started."""
    compiled = guardian.__spec__.cached if guardian.__spec__ is not None else None
    return compiled if compiled and Path(compiled).exists() else guardian.__file__


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return False
