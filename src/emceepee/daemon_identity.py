"""Which daemon it is, as callers ask it: the same one after its configuration file was changed, which it follows."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

from emceepee.attach.greeting import Hello
from emceepee.attach.listening import Identity
from emceepee.config_source import ConfigSource
from emceepee.reloading import Reloader


class FollowedIdentity:
    """`read_digest` is of the configuration as it is on disk just now."""

    def __init__(self, identity: Identity, read_digest: Callable[[], str]) -> None:
        self._identity, self._read_digest = identity, read_digest
        self._reloader: Reloader | None = None
        self._is_watched = False

    def follow(self, source: ConfigSource, reloader: Reloader) -> Reloader:
        self._reloader, self._is_watched = reloader, source.is_watched
        return reloader

    def reread(self) -> None:
        """The file was read because someone asked for that. One that is watched is looked at when it matters."""
        if not self._is_watched:
            self._identity = replace(self._identity, configuration=self._read_digest())

    async def refusal(self, hello: Hello) -> str | None:
        """Why it is not for whoever says that. If their configurations differ, the file may just have been changed."""
        is_other = hello.configuration != self._identity.configuration
        if is_other and hello.version == self._identity.version and self._is_watched and self._reloader is not None:
            await self._reloader.catch_up()
            found = await asyncio.to_thread(self._read_digest)
            self._identity = replace(self._identity, configuration=found)
        return self._identity.refusal(hello)

    @property
    def notice(self) -> str | None:
        """What of the file is not in force, for whoever attaches all the same."""
        if self._reloader is None:
            return None
        pid = self._identity.pid
        if (problem := self._reloader.problem) is not None:
            return f"the daemon (process {pid}) goes on with the configuration from before a mistake: {problem}"
        if keys := self._reloader.needing_restart:
            return (
                f"the daemon (process {pid}) was started before a change of {', '.join(keys)}, "
                f"which takes effect when it starts; end it for that: kill {pid}"
            )
        return None
