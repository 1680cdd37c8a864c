"""The daemon's identity as callers see it: it survives changes of the configuration, which the daemon follows."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from emceepee.app.reloader import Reloader
from emceepee.backends.spec import one_line
from emceepee.config.source import ConfigSource
from emceepee.daemon.daemon_socket import Identity
from emceepee.daemon.greeting import DaemonHello

LONGEST_NOTICE = 1000  # characters


class FollowedIdentity:
    """`read_digest` returns the digest of the configuration that is currently on disk."""

    def __init__(self, identity: Identity, read_digest: Callable[[], str]) -> None:
        self._identity, self._read_digest = identity, read_digest
        self._reloader: Reloader | None = None
        self._is_watched = False
        self._catching_up = asyncio.Lock()

    def follow(self, source: ConfigSource, reloader: Reloader) -> Reloader:
        self._reloader, self._is_watched = reloader, source.is_watched
        return reloader

    def reread(self) -> None:
        """Update the digest after a requested reload. A watched file is checked in `refusal` instead."""
        if not self._is_watched:
            self._identity = replace(self._identity, configuration=self._read_digest())

    async def refusal(self, hello: DaemonHello) -> str | None:
        """Return why the client is refused, or None. If the configurations differ, check first for a recent change."""
        if self._is_watched and self._reloader is not None:
            async with self._catching_up:
                if hello.version == self._identity.version and hello.configuration != self._identity.configuration:
                    await self._catch_up(self._reloader)
        return self._identity.refusal(hello)

    async def _catch_up(self, reloader: Reloader) -> None:
        """Return when the configuration on disk, including its secrets, is in effect or was rejected."""
        found = await asyncio.to_thread(self._read_digest)  # first: the next caller detects a change during the reload
        if found != self._identity.configuration:
            await reloader.reload()
            self._identity = replace(self._identity, configuration=found)

    @property
    def notice(self) -> str | None:
        """A notice for attaching clients about the parts of the file that are not in effect."""
        if self._reloader is None:
            return None
        pid = self._identity.pid
        if (problem := self._reloader.problem) is not None:
            return f"the daemon (process {pid}) uses the previous configuration; the current one is invalid: {problem}"
        if mistakes := self._reloader.mistakes:
            words = one_line("; ".join(mistakes), LONGEST_NOTICE)
            return f"the configuration of the daemon (process {pid}) has mistakes: {words}"
        if keys := self._reloader.needing_restart:
            return (
                f"the daemon (process {pid}) was started before a change of {', '.join(keys)}, "
                f"which takes effect when it starts; end it for that: kill {pid}"
            )
        return None
