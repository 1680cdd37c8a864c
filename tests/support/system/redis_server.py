"""A real Redis of the test's own: on a free loopback port, in a folder of its own, gone at the end."""

import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

from support.system.ports import free_port
from support.system.processes import state_of
from support.waiting import wait_until

PROGRAM = "redis-server"
BOUND = 20.0  # seconds, on a busy machine; it is ready in some 20 ms
_prefixes = count()


class RedisServer:
    """A Redis that keeps its port and folder across restarts. Its data survive only with `appendonly`."""

    def __init__(self, folder: Path, *settings: str, appendonly: bool = False, password: str | None = None) -> None:
        self.folder, self.password = folder, password
        self.port = free_port()
        self._settings = (
            *("--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(folder), "--save", ""),
            *("--appendonly", "yes" if appendonly else "no", "--appendfsync", "always"),
            *(("--requirepass", password) if password else ()),
            *settings,
        )
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def url(self, prefix: str | None = None) -> str:
        """With a prefix of its own each time, unless one is given."""
        login = f":{self.password}@" if self.password else ""
        return f"redis://{login}127.0.0.1:{self.port}/0?prefix={prefix or new_prefix()}"

    def start(self) -> None:
        """Returns when it answers."""
        assert self._process is None or self._process.poll() is not None
        program = shutil.which(PROGRAM)
        assert program is not None, f"{PROGRAM} is not installed: run `make redis`"
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen([program, *self._arguments()], stdout=log, stderr=log)
        wait_until(self._answers, what="Redis answers")

    def stop(self) -> None:
        """In order, if it runs."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def pause(self) -> None:
        """It keeps its connections, and answers nobody."""
        os.kill(self.pid, signal.SIGSTOP)
        wait_until(lambda: state_of(self.pid) in ("T", "t"), what="Redis is paused")

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def command(self, *words: str | bytes) -> bytes:
        """The reply as it is on the wire, for what a test has to do behind emceepee's back."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=BOUND) as connection:
            connection.settimeout(BOUND)
            if self.password:
                connection.sendall(_packed("AUTH", self.password))
                assert connection.recv(1024) == b"+OK\r\n"
            connection.sendall(_packed(*words))
            return connection.recv(1 << 20)

    def _arguments(self) -> Sequence[str]:
        return self._settings

    def _answers(self) -> bool:
        assert self.is_running, f"Redis ended: {(self.folder / 'log').read_text()}"
        try:
            return self.command("PING") == b"+PONG\r\n"
        except OSError:
            return False

    def _end(self, by: signal.Signals) -> None:
        if self._process is None:
            return
        if self.is_running:
            os.kill(self.pid, by)
            os.kill(self.pid, signal.SIGCONT)  # one that is paused would not hear of it
        self._process.wait(BOUND)


class Sentinel(RedisServer):
    """Watches another one, and tells where it is."""

    def __init__(self, folder: Path, watched: RedisServer, service: str) -> None:
        super().__init__(folder)
        self._text = f"port {self.port}\nbind 127.0.0.1\ndir {folder}\n"
        self._text += f"sentinel monitor {service} 127.0.0.1 {watched.port} 1\n"

    def _arguments(self) -> Sequence[str]:
        file = self.folder / "sentinel.conf"
        file.write_text(self._text)
        return str(file), "--sentinel"


Running = TypeVar("Running", bound=RedisServer)


@contextmanager
def sentinel_of(watched: RedisServer, service: str) -> Iterator[Sentinel]:
    folder = Path(tempfile.mkdtemp(prefix="emceepee-redis-"))
    yield from _running(Sentinel(folder, watched, service))


@contextmanager
def redis_server(*settings: str, appendonly: bool = False, password: str | None = None) -> Iterator[RedisServer]:
    folder = Path(tempfile.mkdtemp(prefix="emceepee-redis-"))
    yield from _running(RedisServer(folder, *settings, appendonly=appendonly, password=password))


def _running(server: Running) -> Iterator[Running]:
    try:
        server.start()
        yield server
    finally:
        server.kill()
        shutil.rmtree(server.folder)


def new_prefix() -> str:
    """One per test keeps tests apart that share a server."""
    return f"test-{os.getpid()}-{next(_prefixes)}"


def _packed(*words: str | bytes) -> bytes:
    parts = [word.encode() if isinstance(word, str) else word for word in words]
    return b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
