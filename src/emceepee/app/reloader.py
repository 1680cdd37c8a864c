"""Follow the configuration file while emceepee runs, and apply only what changed in it.

    a change in a folder (watchfiles) ─┐
    every few seconds ─────────────────┼─▶ the file's stamp changed ─▶ read it ─▶ compare ─▶ act
    SIGUSR1 ───────────────────────────┴───────────────────────────────▲

The stamp decides whether to read the file, regardless of the trigger. So the same code handles editors that write by
renaming, retargeted symlinks, and file systems that report no changes.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import fields, replace
from importlib import import_module

from emceepee.clock import Clock
from emceepee.config.file_reader import log_warnings, warn_of_problems
from emceepee.config.settings import Config, ConfigError
from emceepee.config.source import RELOAD_SIGNAL, ConfigSource, folders_of, stamp_of
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.sessions.servers.registry import ServerRegistry
from emceepee.sessions.servers.server_changes import compare_servers
from emceepee.state.limits import LIVE, Limits
from emceepee.telemetry import logs

log = logs.EventLog("config")
START_SECONDS = 1.0  # delay before watching starts, so that loading the watcher does not delay the first answer
LOOK_SECONDS = 5.0  # interval between checks of the stamp if no change is reported
QUIET_MS, MOST_MS = 100, 1000  # debouncing: changes this close together count as one, up to the maximum
SETTLE_SECONDS = 0.5  # wait for a writer to finish before a file counts as broken
# Fields of Config whose changes need a restart, with their keys in the file. Other changes take effect at once.
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
    """Return the keys in the file that changed and take effect only at the next start."""
    limits = [f"limits.{name}" for name in before.limits.changed_in(after.limits) if name not in LIVE]
    return limits + [key for name, key in _AFTER_RESTART.items() if getattr(before, name) != getattr(after, name)]


# Fields of Config, by their keys in the file, that get their default if the file has a mistake in them.
_HARMLESS = {
    "notices": "notices",
    "nativeElicitation": "native_elicitation",
    "searchVectors": "search_vectors",
    "logLevel": "log_level",
    "logFormat": "log_format",
}


def keep_settings(config: Config, before: Config) -> Config:
    """Return `config`, but with the previous values of harmless settings and limits that have mistakes in the file."""
    keys = {problem.key for problem in config.problems if problem.server is None}
    kept = {name: getattr(before, name) for key, name in _HARMLESS.items() if key in keys}
    if "limits" in keys:
        kept["limits"] = replace(before.limits)
    elif names := [name for name in (item.name for item in fields(Limits)) if f"limits.{name}" in keys]:
        kept["limits"] = replace(config.limits, **{name: getattr(before.limits, name) for name in names})
    return replace(config, **kept)


class Reloader:
    """Applies changes in the file.

    `on_change` is called with each new configuration. The registry applies it before any other task runs.
    """

    def __init__(
        self,
        source: ConfigSource,
        config: Config,
        registry: ServerRegistry,
        clock: Clock,
        on_change: Callable[[Config], None],
    ) -> None:
        self._source, self._registry, self._clock = source, registry, clock
        self._on_change, self._at_start = on_change, config
        # A copy of what the file contained last. The active limits object differs: not all of its values follow the
        # file.
        self._limits, self._config = config.limits, replace(config, limits=replace(config.limits))
        self._stamp = source.stamp
        self._problem: str | None = None
        self._reading = asyncio.Lock()

    async def run(self) -> None:
        """Follow the file until cancelled."""
        await self._clock.sleep(START_SECONDS)
        try:
            await self._watch()
        except (OSError, ImportError) as error:  # for example: the user has too many watches
            log.warning("config_changes_not_reported", error=str(error), instead=f"a check every {LOOK_SECONDS:g} s")
        while True:
            await self.look()
            await self._clock.sleep(LOOK_SECONDS)

    async def _watch(self) -> None:
        await asyncio.to_thread(import_module, "watchfiles")
        from watchfiles import awatch

        while True:
            await self.look()  # catches changes from before the watch exists
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
        """Read the file if its stamp changed, or if a missing file that it refers to now exists."""
        missing = [problem.missing for problem in self._config.problems if problem.missing is not None]
        if stamp_of(self._source.file) != self._stamp or any(stamp_of(file) is not None for file in missing):
            await self.reload()

    @property
    def problem(self) -> str | None:
        """Why the file's current content is not in use, or None."""
        return self._problem

    @property
    def mistakes(self) -> list[str]:
        """The mistakes in the file's active version."""
        return [str(problem) for problem in self._config.problems]

    @property
    def needing_restart(self) -> list[str]:
        """The keys in the file whose values differ from those at startup and take effect only at the next start."""
        return needing_restart(self._at_start, self._config)

    async def reload(self) -> None:
        """Read the file regardless of its stamp. If it cannot be parsed, the configuration stays unchanged."""
        async with self._reading:
            try:
                config = await self._read_settled()
            except Exception as error:  # even an unexpected error: the next version of the file must still be read
                words = str(error) if isinstance(error, ConfigError) else f"{self._source.file}: {error!r}"
                self._problem = self._registry.problem = words
                log.warning("config_not_reloaded", error=words, instead="the previous configuration stays in use")
                return
            await self._apply(config)

    async def _read_settled(self) -> Config:
        """Read the file, and again after a delay if it has new mistakes: a writer may not be finished.

        Raises: ConfigError.
        """
        try:
            config = await self._read()
            if {*config.problems} <= {*self._config.problems}:
                return config
        except ConfigError:
            pass
        await self._clock.sleep(SETTLE_SECONDS)
        return await self._read()

    async def _read(self) -> Config:
        self._stamp = stamp_of(self._source.file)  # before reading, so that a concurrent write triggers another read
        return await asyncio.to_thread(self._source.read)  # in a thread: it may wait for a keyring

    async def _apply(self, config: Config) -> None:
        before, config = self._config, keep_settings(config, self._config)
        changes = compare_servers(before.servers, config.servers)
        # A caller may be adding a server of the same name. Wait here, not in the registry: otherwise the instructions
        # and the daemon's identity would be those of the new file before its servers are in use.
        await self._registry.trials.wait_for_names({spec.name for spec in changes.added})
        self._config, self._problem = config, None
        self._registry.problem = config.general_problem
        if config.log_level != before.log_level:
            logs.set_level(config.log_level)
        summary = changes.summary()
        if limits := [name for name in before.limits.changed_in(config.limits) if name in LIVE]:
            self._limits.update(config.limits)
            summary["limits"] = limits
        log.info("config_reloaded", file=str(self._source.file), **summary)
        if later := needing_restart(before, config):
            log.warning("config_needs_restart", keys=later, because="these keys take effect at the next start")
        if config.ignored and config.ignored != before.ignored:
            log.warning("config_keys_ignored", keys=list(config.ignored))
        warn_of_problems([problem for problem in config.problems if problem not in before.problems])
        log_warnings([warning for warning in config.warnings if warning not in before.warnings])
        self._on_change(config)
        self._registry.set_disabled(config.disabled)
        if changes:
            await self._registry.apply(changes)


@asynccontextmanager
async def follow_file(source: ConfigSource | None, make: Callable[[ConfigSource], Reloader]) -> AsyncIterator[None]:
    """Follow the file and SIGUSR1 inside this context. Without a file, watch and load nothing."""
    tasks, loop = TaskOwner("config"), asyncio.get_running_loop()
    reloader = None if source is None else make(source)

    def reload() -> None:
        if reloader is None:
            log.warning("config_not_reloaded", error="the configuration does not come from a file")
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
