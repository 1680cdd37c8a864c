"""The configuration file is followed while emceepee runs: what was changed in it is changed here, and nothing else.

    a change in a folder (watchfiles) ─┐
    every few seconds ─────────────────┼─▶ the file's stamp is another ─▶ read it ─▶ compare ─▶ act
    SIGUSR1 ───────────────────────────┴──────────────────────────────────▲

Whether there is something to do, the stamp decides, whatever gave reason to look. So editors that write by renaming,
links that are pointed elsewhere, and file systems that report no changes are all the same.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from importlib import import_module

from emceepee.clock import Clock
from emceepee.config.file_reading import warn_of_problems
from emceepee.config.settings import Config, ConfigError
from emceepee.config.source import RELOAD_SIGNAL, ConfigSource, folders_of, stamp_of
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.sessions.servers.server_changes import compare_servers
from emceepee.state.limits import LIVE, Limits
from emceepee.telemetry import logs

log = logs.EventLog("config")
START_SECONDS = 1.0  # before the watching begins: nobody who wants an answer first is to wait for what it loads
LOOK_SECONDS = 5.0  # between looks at the stamp where no change is reported
QUIET_MS, MOST_MS = 100, 1000  # changes are one if they follow each other so closely, but no longer than that
SETTLE_SECONDS = 0.5  # for whoever is still writing, before a file counts as broken
# By the field of Config, the key in the file. Of those that are not here, a change takes effect at once.
_AFTER_RESTART = {
    "roots": "roots",
    "surface": "surface",
    "search_vectors": "searchVectors",
    "log_format": "logFormat",
    "state": "state",
    "state_sync": "stateSync",
    "secrets": "secrets",
}


def needing_restart(before: Config, after: Config) -> list[str]:
    """The keys of the file that were changed, and are looked at only when emceepee starts."""
    limits = [f"limits.{name}" for name in before.limits.changed_in(after.limits) if name not in LIVE]
    return limits + [key for name, key in _AFTER_RESTART.items() if getattr(before, name) != getattr(after, name)]


# By the key in the file, the field of Config, of settings that have their defaults if they have mistakes.
_HARMLESS = {
    "notices": "notices",
    "nativeElicitation": "native_elicitation",
    "searchVectors": "search_vectors",
    "logLevel": "log_level",
    "logFormat": "log_format",
}


def keep_settings(config: Config, before: Config) -> Config:
    """The same with the values from before where the file has mistakes in harmless settings and limits."""
    keys = {problem.key for problem in config.problems if problem.server is None}
    kept = {name: getattr(before, name) for key, name in _HARMLESS.items() if key in keys}
    if "limits" in keys:
        kept["limits"] = replace(before.limits)
    elif names := [name for name in (item.name for item in fields(Limits)) if f"limits.{name}" in keys]:
        kept["limits"] = replace(config.limits, **{name: getattr(before.limits, name) for name in names})
    return replace(config, **kept)


class Reloader:
    """`on_change` is told of every configuration that is taken over, after the registry."""

    def __init__(
        self,
        source: ConfigSource,
        config: Config,
        registry: ServerRegistry,
        clock: Clock,
        on_change: Callable[[Config], None] = lambda _: None,
    ) -> None:
        self._source, self._registry, self._clock = source, registry, clock
        self._on_change, self._at_start = on_change, config
        # What the file said last, besides the object that is in use: of that, not everything changes with the file.
        self._limits, self._config = config.limits, replace(config, limits=replace(config.limits))
        self._stamp = source.stamp
        self._problem: str | None = None
        self._reading = asyncio.Lock()

    async def run(self) -> None:
        """Follow the file until cancelled."""
        await self._clock.sleep(START_SECONDS)
        try:
            await self._watch()
        except (OSError, ImportError) as error:  # such as: the user has too many watches
            log.warning("config_changes_not_reported", error=str(error), instead=f"a look every {LOOK_SECONDS:g} s")
        while True:
            await self.look()
            await self._clock.sleep(LOOK_SECONDS)

    async def _watch(self) -> None:
        await asyncio.to_thread(import_module, "watchfiles")
        from watchfiles import awatch

        while True:
            await self.look()  # the changes from before there is a watch
            folders = folders_of(self._source.file)
            changes = awatch(
                *folders,
                watch_filter=None,
                debounce=MOST_MS,
                step=QUIET_MS,
                rust_timeout=round(LOOK_SECONDS * 1000),
                yield_on_timeout=True,
                recursive=False,
            )
            try:
                async for _ in changes:
                    await self.look()
                    if folders_of(self._source.file) != folders:
                        break
            finally:
                await changes.aclose()

    async def look(self) -> None:
        """Read the file if it is another one, or if a missing file that it refers to is there now."""
        missing = [problem.missing for problem in self._config.problems if problem.missing is not None]
        if stamp_of(self._source.file) != self._stamp or any(stamp_of(file) is not None for file in missing):
            await self.reload()

    @property
    def problem(self) -> str | None:
        """Why the file as it is now is not in force."""
        return self._problem

    @property
    def mistakes(self) -> list[str]:
        """Those in the file that is in force."""
        return [str(problem) for problem in self._config.problems]

    @property
    def needing_restart(self) -> list[str]:
        """The keys of the file with another value than emceepee was started with, which count then only."""
        return needing_restart(self._at_start, self._config)

    async def reload(self) -> None:
        """Read the file, whatever its stamp is. One that cannot be read as a whole changes nothing."""
        async with self._reading:
            try:
                config = await self._read_settled()
            except Exception as error:  # also what nobody thought of: the next version of the file is to be read
                words = str(error) if isinstance(error, ConfigError) else f"{self._source.file}: {error!r}"
                self._problem = self._registry.problem = words
                log.warning("config_not_reloaded", error=words, instead="the configuration before it stays in use")
                return
            await self._apply(config)

    async def _read_settled(self) -> Config:
        """Read the file twice if it has new mistakes: someone may be writing it, or a secret. Raises: ConfigError."""
        try:
            config = await self._read()
            if {*config.problems} <= {*self._config.problems}:
                return config
        except ConfigError:
            pass
        await self._clock.sleep(SETTLE_SECONDS)
        return await self._read()

    async def _read(self) -> Config:
        self._stamp = stamp_of(self._source.file)  # before it is read: what is written meanwhile is read again
        return await asyncio.to_thread(self._source.read)  # which may have to ask a keyring

    async def _apply(self, config: Config) -> None:
        before, config = self._config, keep_settings(config, self._config)
        self._config, self._problem = config, None
        self._registry.problem = config.general_problem
        changes = compare_servers(before.servers, config.servers)
        if config.log_level != before.log_level:
            logs.set_level(config.log_level)
        summary = changes.summary()
        if limits := [name for name in before.limits.changed_in(config.limits) if name in LIVE]:
            self._limits.take_over(config.limits)
            summary["limits"] = limits
        log.info("config_reloaded", file=str(self._source.file), **summary)
        if later := needing_restart(before, config):
            log.warning("config_needs_restart", keys=later, because="these take effect at the next start")
        if config.ignored and config.ignored != before.ignored:
            log.warning("config_keys_ignored", keys=list(config.ignored))
        warn_of_problems([problem for problem in config.problems if problem not in before.problems])
        self._on_change(config)
        self._registry.set_disabled(config.disabled)
        if changes:
            await self._registry.apply(changes)


@asynccontextmanager
async def follow_file(source: ConfigSource | None, make: Callable[[ConfigSource], Reloader]) -> AsyncIterator[None]:
    """While inside, the configuration is what the file says. Without a file, nothing is watched or loaded."""
    tasks, loop = TaskOwner("config"), asyncio.get_running_loop()
    reloader = None if source is None else make(source)

    def reload() -> None:
        if reloader is None:
            log.warning("config_not_reloaded", error="there is no file that it came from")
        else:
            tasks.spawn(reloader.reload(), name="reload")

    loop.add_signal_handler(RELOAD_SIGNAL, reload)
    if reloader is not None and source is not None and source.is_watched:
        tasks.spawn(reloader.run(), name="watch")
    try:
        yield
    finally:
        loop.remove_signal_handler(RELOAD_SIGNAL)
        await tasks.close(within=CLOSE_IDLE_SECONDS)
