"""`emceepee` on standard input and output: one caller and an optional console."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from emceepee.app.reloader import Reloader, follow_file
from emceepee.app.session_parts import (
    Invite,
    follow_changes,
    notice_options,
    observing,
    open_session,
    open_store,
    served_tools,
    session_parts,
    shared_changes,
)
from emceepee.clock import Clock, SystemClock, milliseconds
from emceepee.config.settings import Config
from emceepee.config.source import ConfigSource
from emceepee.guard.caller_identity import LOCAL
from emceepee.ids import Ulids
from emceepee.server.dispatch import Tools
from emceepee.server.protocol_methods import ProtocolMethods
from emceepee.server.stdio.stdio_endpoint import serve_stdio
from emceepee.sessions.directory.directory import SessionDirectory
from emceepee.sessions.directory.session_storage import SessionsUnavailable
from emceepee.sessions.parts import SessionParts
from emceepee.sessions.session import Session
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.store.store import HeldElsewhere, Store
from emceepee.surface import use_surface

HELD_SECONDS = 10.0  # less than a client waits for a server to start
HELD_LOOK_SECONDS = 0.05  # interval between checks whether the session is free


async def run_stdio(
    config: Config, *, stdin: int, stdout: int, invite: Invite, source: ConfigSource | None = None
) -> None:
    """Serve one caller on standard input and output, with an optional console."""
    use_surface(config.surface)
    clock = SystemClock()
    async with (
        open_store(config, clock) as store,
        observing(config, clock) as observers,
        session_parts(config, clock, store, observers=observers) as parts,
        follow_changes(shared_changes(store, parts)),
        stdio_session(config, store, parts) as session,
    ):
        parts.registry.ends_with_caller = not store.is_durable
        session.update_profile(transport="stdio")
        session.open_streams += 1  # an open stream keeps the session awake while the process runs
        tools = served_tools(config)
        methods = ProtocolMethods(tools, servers=config.servers, takes_handles=False)

        def take_over(config: Config) -> None:
            methods.servers = config.servers
            session.notice_options = notice_options(config)

        async with (
            console_beside(session, config, parts, invite) as open_console,
            follow_file(source, lambda source: Reloader(source, config, parts.registry, clock, take_over)),
        ):
            await serve_stdio(
                methods,
                Tools(tools, config.surface),
                session,
                stdin=stdin,
                stdout=stdout,
                longest_line=config.limits.line_bytes,
                on_first_answer=open_console,
            )


@asynccontextmanager
async def stdio_session(config: Config, store: Store, parts: SessionParts) -> AsyncIterator[Session]:
    """Open the process's only session: a new one, or the configured named one, restored. Raises: StoreError."""
    if config.session_name is None:
        session_id = Ulids(lambda: milliseconds(parts.clock.now())).new()
        async with open_session(session_id, LOCAL, parts) as session:
            yield session
        return
    key = SessionKey(LOCAL, KeyKind.NAME, config.session_name)
    directory = SessionDirectory(parts, store, is_contested=True)
    try:
        yield await open_when_free(directory, store, key, parts.clock)
    finally:
        await directory.close_all()


async def open_when_free(directory: SessionDirectory, store: Store, key: SessionKey, clock: Clock) -> Session:
    """Open the named session when no other process holds it.

    Race: two processes may both find no session of this name. Only one of them can create it, and the other one waits.

    Raises: HeldElsewhere after a bounded wait, SessionsUnavailable, StoreError.
    """
    deadline = clock.monotonic() + HELD_SECONDS
    while True:
        await take_when_free(store, key, clock)
        try:
            return await directory.find_or_open(key)
        except SessionsUnavailable:
            if clock.monotonic() >= deadline:
                raise
        await clock.sleep(HELD_LOOK_SECONDS)


async def take_when_free(store: Store, key: SessionKey, clock: Clock) -> None:
    """Wait until no other process holds the session: clients may start several processes at once, one for each call.

    Raises: HeldElsewhere after a bounded wait, StoreError.
    """
    deadline = clock.monotonic() + HELD_SECONDS
    while True:
        try:
            await store.take(key)
            return
        except HeldElsewhere as error:
            if clock.monotonic() >= deadline:
                words = f"{error} Clients that start several at once can share one with --attach auto --session NAME."
                raise HeldElsewhere(words, error.holder) from None
        await clock.sleep(HELD_LOOK_SECONDS)


@asynccontextmanager
async def console_beside(
    session: Session, config: Config, parts: SessionParts, invite: Invite
) -> AsyncIterator[Callable[[], None] | None]:
    """Yield a function that opens the console, or None.

    The console listens only after the first answer, to delay no caller.
    """
    if config.console_port is None:
        yield None
        return
    from emceepee.app.http_app import console_of  # imported here: most callers have no console

    directory = SessionDirectory(parts)
    directory.adopt(session)
    try:
        async with console_of(directory, config, parts, invite) as open_console:
            yield open_console
    finally:
        directory.release(session)
        await directory.close_all()
