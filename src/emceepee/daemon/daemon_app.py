"""The daemon of one user: its parts, its lifetime, and the order of its shutdown."""

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from emceepee.app.reloader import Reloader, follow_file
from emceepee.app.session_parts import (
    Invite,
    follow_changes,
    notice_options,
    observing,
    open_store,
    served_tools,
    session_parts,
    shared_changes,
)
from emceepee.clock import Clock, Handle, SystemClock
from emceepee.config.settings import Config
from emceepee.config.source import ConfigSource
from emceepee.daemon.attached_callers import AttachedCallers
from emceepee.daemon.followed_identity import FollowedIdentity
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.server.dispatch import Tools
from emceepee.server.garbage_collector import freeze_startup_objects
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.stop_signals import on_stop_signals
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.parts import SessionParts
from emceepee.surface import use_surface
from emceepee.telemetry.logs import EventLog

log = EventLog("app")


class IdleTimer:
    """Ends the daemon after `seconds` without a caller, if its sessions have no work in progress."""

    def __init__(
        self, clock: Clock, seconds: float | None, is_used: Callable[[], bool], end: Callable[[], None]
    ) -> None:
        self._clock, self._seconds, self._is_used, self._end = clock, seconds, is_used, end
        self._timer: Handle | None = None

    def restart(self) -> None:
        """Restart the timer. Called after each caller that connects or leaves."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None if self._seconds is None else self._clock.call_later(self._seconds, self._expire)

    def _expire(self) -> None:
        self._timer = None
        if self._is_used():
            self.restart()
        else:
            log.info("daemon_idle", idleMs=round((self._seconds or 0) * 1000))
            self._end()

    def stop(self) -> None:
        self._seconds = None
        self.restart()


async def run_daemon(
    config: Config,
    listener: socket.socket,
    identity: FollowedIdentity,
    *,
    idle_exit: float | None,
    ready: Callable[[], None],
    invite: Invite,
    source: ConfigSource | None = None,
) -> None:
    """Serve until a stop signal, or until no caller has connected for `idle_exit` seconds."""
    use_surface(config.surface)
    clock = SystemClock()
    async with (
        open_store(config, clock) as store,
        observing(config, clock) as observers,
        session_parts(config, clock, store, observers=observers) as parts,
        follow_changes(shared_changes(store, parts)),
    ):
        directory = SessionDirectory(parts, store)
        tools = served_tools(config)
        methods = ProtocolMethods(tools, servers=config.servers, takes_handles=False)
        callers = AttachedCallers(
            methods,
            Tools(tools, config.surface),
            directory,
            identity,
            longest_line=config.limits.line_bytes,
            link_file=None if config.link_file is None or config.console_port is None else str(config.link_file),
        )

        def take_over(config: Config) -> None:
            methods.servers = config.servers
            directory.set_notice_options(notice_options(config))
            identity.reread()

        def reloader(source: ConfigSource) -> Reloader:
            return identity.follow(source, Reloader(source, config, parts.registry, clock, take_over))

        try:
            async with console_beside_daemon(directory, config, parts, invite), follow_file(source, reloader):
                await directory.look_after_store()
                await _serve(callers, directory, listener, idle_exit=idle_exit, ready=ready)
        finally:
            await directory.close_all()


@asynccontextmanager
async def console_beside_daemon(
    directory: SessionDirectory, config: Config, parts: SessionParts, invite: Invite
) -> AsyncIterator[None]:
    if config.console_port is None:
        yield
        return
    from emceepee.app.http_app import console_of  # here: most daemons have no console

    async with console_of(directory, config, parts, invite) as open_console:
        open_console()
        yield


async def _serve(
    callers: AttachedCallers,
    directory: SessionDirectory,
    listener: socket.socket,
    *,
    idle_exit: float | None,
    ready: Callable[[], None],
) -> None:
    freeze_startup_objects()
    stopped, hurried = asyncio.Event(), asyncio.Event()
    on_stop_signals(lambda: hurried.set() if stopped.is_set() else stopped.set())
    idle_timer = IdleTimer(directory.clock, idle_exit, lambda: bool(len(callers)) or directory.is_busy, stopped.set)
    tasks = TaskOwner("daemon")
    try:
        tasks.spawn(callers.accept(listener, idle_timer.restart), name="accept")
        idle_timer.restart()
        ready()
        await stopped.wait()
        _hide(listener)
        directory.begin_stop()
        await callers.drain(hurried)
    finally:
        idle_timer.stop()
        await tasks.close(within=CLOSE_IDLE_SECONDS)
        await callers.close()


def _hide(listener: socket.socket) -> None:
    """Remove the socket, so that new callers find no daemon and start a new one."""
    with suppress(OSError):
        Path(listener.getsockname()).unlink(missing_ok=True)
