"""Which daemon it is, as callers ask it: the same one after a change of its configuration, which it follows."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from emceepee.app.reloading import Reloader
from emceepee.backends.spec import one_line
from emceepee.config.source import ConfigSource
from emceepee.daemon.greeting import DaemonHello
from emceepee.daemon.listening import Identity

LONGEST_NOTICE = 1000  # characters


class FollowedIdentity:
    """`read_digest` is of the configuration as it is on disk just now."""

    def __init__(self, identity: Identity, read_digest: Callable[[], str]) -> None:
        self._identity, self._read_digest = identity, read_digest
        self._reloader: Reloader | None = None
        self._is_watched = False
        self._catching_up = asyncio.Lock()

    def follow(self, source: ConfigSource, reloader: Reloader) -> Reloader:
        self._reloader, self._is_watched = reloader, source.is_watched
        return reloader

    def reread(self) -> None:
        """The file was read because someone asked for that. One that is watched is looked at when it matters."""
        if not self._is_watched:
            self._identity = replace(self._identity, configuration=self._read_digest())

    async def refusal(self, hello: DaemonHello) -> str | None:
        """Why it is not for whoever says that. If their configurations differ, it may just have been changed."""
        if self._is_watched and self._reloader is not None:
            async with self._catching_up:
                if hello.version == self._identity.version and hello.configuration != self._identity.configuration:
                    await self._catch_up(self._reloader)
        return self._identity.refusal(hello)

    async def _catch_up(self, reloader: Reloader) -> None:
        """Returns when what is on disk is in force, or was refused: the file, and the secrets that it refers to."""
        found = await asyncio.to_thread(self._read_digest)  # first: what changes meanwhile is seen by the next caller
        if found != self._identity.configuration:
            await reloader.reload()
            self._identity = replace(self._identity, configuration=found)

    @property
    def notice(self) -> str | None:
        """What of the file is not in force, for whoever attaches all the same."""
        if self._reloader is None:
            return None
        pid = self._identity.pid
        if (problem := self._reloader.problem) is not None:
            return f"the daemon (process {pid}) goes on with the configuration from before a mistake: {problem}"
        if mistakes := self._reloader.mistakes:
            words = one_line("; ".join(mistakes), LONGEST_NOTICE)
            return f"the configuration of the daemon (process {pid}) has mistakes: {words}"
        if keys := self._reloader.needing_restart:
            return (
                f"the daemon (process {pid}) was started before a change of {', '.join(keys)}, "
                f"which takes effect when it starts; end it for that: kill {pid}"
            )
        return None
