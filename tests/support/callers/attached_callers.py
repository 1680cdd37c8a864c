"""Callers of one user that attach to a daemon, in a home of their own. The daemon ends with the test."""

import asyncio
import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

from support.callers.emceepee_process import EmceepeeProcess, configured, emceepee
from support.system.processes import is_alive, until

IDLE = 60.0  # seconds without a caller until the daemon ends: longer than a test that does not wait for it


class Home:
    """Where a user's daemon is found."""

    def __init__(self, folder: Path, servers: dict[str, dict[str, Any]], **limits: float) -> None:
        self.runtime = folder / "run"
        self.runtime.mkdir(mode=0o700)
        self.env = configured(servers, **limits) | {
            "HOME": str(folder),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_STATE_HOME": str(folder / "state"),
        }

    @property
    def place(self) -> Path:
        return self.runtime / "emceepee"

    @property
    def daemon(self) -> int | None:
        """Its process, if one runs."""
        try:
            pid = int((self.place / "daemon.lock").read_text())
        except (OSError, ValueError):
            return None
        return pid if is_alive(pid) else None

    def write_config(self, servers: dict[str, dict[str, Any]], **more: Any) -> Path:
        """The user's own file from now on, as editors write it."""
        file = self.runtime.parent / "servers.json"
        new = file.with_suffix(".new")
        new.write_text(json.dumps({"mcpServers": servers, **more}))
        new.replace(file)
        self.env["EMCEEPEE_CONFIG"] = str(file)
        return file

    def attached(
        self,
        *arguments: str,
        way: str = "auto",
        idle: float = IDLE,
        env: dict[str, str] | None = None,
        entry: tuple[str, ...] = ("-m", "emceepee"),
        command: tuple[str, ...] = (),
    ) -> AbstractAsyncContextManager[EmceepeeProcess]:
        return emceepee(
            *("--attach", way, "--idle-exit", str(idle), *arguments),
            env=self.env | (env or {}),
            stderr=asyncio.subprocess.PIPE,
            entry=entry,
            command=command,
        )

    def kill_daemon(self, number: int = signal.SIGKILL) -> int:
        pid = self.daemon
        assert pid is not None
        os.kill(pid, number)
        return pid


@asynccontextmanager
async def home(servers: dict[str, dict[str, Any]] | None = None, **limits: float) -> AsyncIterator[Home]:
    # A socket's path must be short, which that of pytest's folders is not.
    with tempfile.TemporaryDirectory(prefix="emc-") as folder:
        made = Home(Path(folder), servers or {}, **limits)
        try:
            yield made
        finally:
            if (pid := made.daemon) is not None:
                os.kill(pid, signal.SIGTERM)
                await until(lambda: not is_alive(pid), what="the daemon has ended")


async def said(caller: EmceepeeProcess) -> str:
    """A line on standard error."""
    assert caller.process.stderr is not None
    line = await asyncio.wait_for(caller.process.stderr.readline(), IDLE)
    return line.decode()
