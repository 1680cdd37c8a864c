"""The server configurations that sessions share: the operator's serve everyone, a principal's its own sessions."""

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from typing import Protocol

from emceepee.backends.spec import BackendSpec, UnusableTarget
from emceepee.errors import EmceepeeError, ErrorCode, InvalidArguments, NotAllowed, UnknownBackend
from emceepee.sessions.servers.server_changes import ServerChanges, compare_servers
from emceepee.sessions.servers.server_repository import ServerRepository
from emceepee.sessions.servers.server_settings import read_specs
from emceepee.sessions.servers.server_trial import Trial
from emceepee.state.limits import Limits
from emceepee.store.store import ServerConfiguration, Store, StoreError
from emceepee.surface import call_to
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")
Specs = dict[str, BackendSpec]
LONGEST_STEM = 90  # characters of a name that is in use, in the free one that is proposed


MISTAKE = "the operator's configuration has a mistake; emceepee's log says more"


class BeingChanged(StoreError):
    """What other processes changed of a server is not taken over while that server is being changed here."""


class Watcher(Protocol):
    """A session that follows the registry."""

    def on_server_added(self, spec: BackendSpec) -> None: ...
    async def on_server_removed(self, name: str) -> None: ...
    async def on_server_configured(self, spec: BackendSpec) -> None: ...
    def on_disabled_changed(self) -> None: ...


class ServerRegistry:
    """Who has which servers. Every change reaches all sessions of the principal."""

    def __init__(
        self,
        operators: Iterable[BackendSpec],
        *,
        operators_are_fixed: bool = False,
        most_added: int = Limits().servers_per_principal,
        store: Store | None = None,
    ) -> None:
        """With a store, what is added is kept there, and shared with the other processes that use it."""
        self._operators_are_fixed, self._most_added = operators_are_fixed, most_added
        self._operators = {spec.name: self._for_callers(spec) for spec in operators}
        self._disabled_operators: Specs = {}
        self._added: dict[str, Specs] = {}
        self._disabled: dict[str, Specs] = {}  # added, and kept for later
        self._watchers: dict[str, list[Watcher]] = {}
        self._trials: dict[tuple[str, str], Trial] = {}
        self._repository = None if store is None else ServerRepository(store)
        self._loaded: set[str] = set()  # principals whose servers were read from the store
        self._changes = 0  # of what is added or disabled, counted
        self.ends_with_caller = False  # whether a caller starts it, and what was added is gone when the caller ends
        self.has_replicas: Callable[[], bool] = lambda: False  # that have the same configuration
        self.problem: str | None = None  # why the operator's configuration, as it is now, is not used

    @property
    def may_have_forgotten(self) -> bool:
        """Whether a caller may know servers from an earlier run. Not if it has added some in this one."""
        return self.ends_with_caller and self._changes == 0

    def join(self, principal: str, watcher: Watcher) -> Specs:
        """Follow a principal's servers from now on; returns those there are."""
        self._watchers.setdefault(principal, []).append(watcher)
        return self._operators | self._added.get(principal, {})

    def leave(self, principal: str, watcher: Watcher) -> None:
        watchers = self._watchers.get(principal, [])
        if watcher in watchers:
            watchers.remove(watcher)
        if not watchers:
            self._watchers.pop(principal, None)

    def trial_of(self, principal: str, spec: BackendSpec) -> Trial | None:
        """One to wait for: of the same server, or one that will leave its name."""
        trial = self._trials.get((principal, spec.name))
        return trial if trial is not None and (trial.is_called_off or trial.spec == spec) else None

    @contextmanager
    def reserve_name(self, principal: str, spec: BackendSpec, *, replaces: bool = False) -> Iterator[Trial]:
        """Hold a name while its server is being tried, so that two callers do not both add it.

        With `replaces`, one of that name has to be there. Raises: InvalidArguments, NotAllowed, UnknownBackend.
        """
        name, key = spec.name, (principal, spec.name)
        if replaces:
            self.find_added(principal, name)
        is_taken = not replaces and (
            name in self._operators or name in self._added.get(principal, {}) or self.is_disabled(principal, name)
        )
        if is_taken or key in self._trials:
            raise self._name_in_use(principal, name)
        if not replaces:
            self._check_room(principal)
        trial = self._trials[key] = Trial(spec, replaces)
        try:
            yield trial
        except BaseException as error:
            trial.end(error)
            raise
        else:
            trial.end(None)
        finally:
            del self._trials[key]

    def _for_callers(self, spec: BackendSpec) -> BackendSpec:
        """Where callers are several principals, what is wrong in the operator's file is not for them to know."""
        if not self._operators_are_fixed or not isinstance(spec.target, UnusableTarget):
            return spec
        return replace(spec, target=replace(spec.target, reason=MISTAKE))

    def _name_in_use(self, principal: str, name: str) -> InvalidArguments:
        added, disabled = self._added.get(principal, {}), self._disabled.get(principal, {})
        there = added.get(name) or disabled.get(name)
        if there is not None:
            whose = "by a server with another configuration"
            whose += "" if there.added is None else f": {there.added}"
            whose += ", and it is disabled" if name in disabled else ""
        elif name in self._operators:
            whose = "by a server with another configuration in the operator's file"
        else:
            whose = "by a server with another configuration that another session adds just now"
        used = {*self._operators, *added, *disabled, *(other for owner, other in self._trials if owner == principal)}
        free = next(other for number in count(2) if (other := f"{name[:LONGEST_STEM]}-{number}") not in used)
        return InvalidArguments(
            f'The name "{name}" is in use {whose}. All sessions of one user share servers, so another session has the '
            f'same names. Choose another name, such as "{free}", or call {call_to("remove_server")} first if nobody '
            "needs that server. Only callers with the token of another user have servers of their own.",
            details={"server": name, "freeName": free},
        )

    def _check_room(self, principal: str) -> None:
        being_added = sum(owner == principal for owner, _ in self._trials)
        there = len(self._added.get(principal, {})) + len(self._disabled.get(principal, {}))
        if there + being_added >= self._most_added:
            raise EmceepeeError(
                f"{self._most_added} servers were added already, which is the limit. Remove one with "
                f"{call_to('remove_server')}.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )

    def add(self, principal: str, spec: BackendSpec, *, by: Watcher | None = None) -> None:
        """From now on it is the principal's; its sessions are told, but for `by`."""
        self._put(principal, spec)
        for watcher in list(self._watchers.get(principal, [])):
            if watcher is not by:
                watcher.on_server_added(spec)

    async def remove(self, principal: str, name: str, *, is_remote: bool = False) -> None:
        """Returns when no session of the principal uses it any more. The operator's are fixed for remote callers, and
        where there are other replicas, which would go on to use them.

        Of two with that name, the principal's own is meant. Raises: UnknownBackend, NotAllowed.
        """
        await self._end_of_change(principal, name)
        if self.is_disabled(principal, name):
            self._take_disabled(principal, name)
            await self._remove_from_store(principal, name)
            self._tell_disabled(principal)
            return
        if self.is_operators(principal, name):
            if self._operators_are_fixed or is_remote:
                raise NotAllowed(f'Server "{name}" is the operator\'s: it serves everyone and cannot be removed here.')
            if self.has_replicas():
                raise NotAllowed(
                    f'Server "{name}" is in the configuration file, which other replicas of emceepee follow, too. '
                    "Remove it there: edit the file, or use the command `emceepee servers remove`."
                )
            del self._operators[name]
        else:
            self._forget(principal, name)
            await self._remove_from_store(principal, name)
        await self._tell_removed(principal, name)

    async def _end_of_change(self, principal: str, name: str) -> None:
        """Wait while other settings of it are tried: whoever does that puts back what was before, if they fail."""
        while (trial := self._trials.get((principal, name))) is not None and trial.replaces:
            await asyncio.wait({trial.outcome})

    async def _tell_removed(self, principal: str, name: str) -> None:
        """The operator's server of that name, if there is one, takes its place."""
        watchers, theirs = list(self._watchers.get(principal, [])), self._operators.get(name)
        if theirs is None:
            await asyncio.gather(*(watcher.on_server_removed(name) for watcher in watchers))
        else:
            await asyncio.gather(*(watcher.on_server_configured(theirs) for watcher in watchers))

    def _put(self, principal: str, spec: BackendSpec) -> None:
        self._changes += 1
        self._added.setdefault(principal, {})[spec.name] = spec

    def _forget(self, principal: str, name: str) -> None:
        added = self._added.get(principal, {})
        if name not in added:
            raise UnknownBackend(name, known=[*self._operators, *added])
        self._changes += 1
        del added[name]
        if not added:
            del self._added[principal]

    # Those that were added, changed later.

    def is_operators(self, principal: str, name: str) -> bool:
        """Whether that name is a server of the configuration file for the principal."""
        return name in self._operators and name not in self._added.get(principal, {})

    def disabled_of(self, principal: str) -> list[BackendSpec]:
        """Those that the principal added."""
        return list(self._disabled[principal].values()) if principal in self._disabled else []

    def disabled_operators_of(self, principal: str) -> list[BackendSpec]:
        """Those of the configuration file whose names the principal has not used. Not told to several principals."""
        if self._operators_are_fixed:
            return []
        added, disabled = self._added.get(principal, {}), self._disabled.get(principal, {})
        return [spec for name, spec in self._disabled_operators.items() if name not in added and name not in disabled]

    def is_disabled(self, principal: str, name: str) -> bool:
        return name in self._disabled.get(principal, {})

    def find_added(self, principal: str, name: str) -> BackendSpec:
        """One that the principal added, also if it is disabled. Raises: NotAllowed, UnknownBackend."""
        added, disabled = self._added.get(principal, {}), self._disabled.get(principal, {})
        if name in added or name in disabled:
            return added[name] if name in added else disabled[name]
        if name in self._operators:
            raise NotAllowed(
                f'Server "{name}" is in the configuration file, and is changed there: edit the file, or use the '
                "command `emceepee servers`. What is changed there takes effect at once."
            )
        raise UnknownBackend(name, known=[*self._operators, *added, *disabled])

    async def change(self, principal: str, spec: BackendSpec, *, by: Watcher | None = None) -> None:
        """It has other settings from now on, and is enabled; the principal's sessions are told, but for `by`."""
        self._take_disabled(principal, spec.name)
        self._put(principal, spec)
        await self._tell_configured(principal, spec, by=by)

    async def _tell_configured(self, principal: str, spec: BackendSpec, *, by: Watcher | None = None) -> None:
        others = [watcher for watcher in self._watchers.get(principal, []) if watcher is not by]
        await asyncio.gather(*(watcher.on_server_configured(spec) for watcher in others))

    async def disable(self, principal: str, name: str) -> None:
        """Returns when no session of the principal uses it any more. Raises: EmceepeeError."""
        await self._end_of_change(principal, name)
        spec = self.find_added(principal, name)
        if self.is_disabled(principal, name):
            return
        await self.save_change(principal, spec, is_disabled=True)
        if self._added.get(principal, {}).get(name) == spec:  # and was not removed meanwhile
            self._forget(principal, name)
            self._disabled.setdefault(principal, {})[name] = spec
            await self._tell_removed(principal, name)
            self._tell_disabled(principal)

    async def enable(self, principal: str, name: str) -> None:
        """It is connected when it is used. Raises: EmceepeeError."""
        await self._end_of_change(principal, name)
        spec = self.find_added(principal, name)
        if not self.is_disabled(principal, name):
            return
        await self.save_change(principal, spec)
        if not self.is_disabled(principal, name):  # it was removed meanwhile
            return
        if name in self._operators:  # whose server its sessions have under that name
            await self.change(principal, spec)
        else:
            self._take_disabled(principal, name)
            self.add(principal, spec)

    def _take_disabled(self, principal: str, name: str) -> BackendSpec | None:
        disabled = self._disabled.get(principal, {})
        spec = disabled.pop(name, None)
        self._changes += spec is not None
        if not disabled:
            self._disabled.pop(principal, None)
        return spec

    def _tell_disabled(self, principal: str) -> None:
        for watcher in list(self._watchers.get(principal, [])):
            watcher.on_disabled_changed()

    # The operator's configuration, when it has changed.

    def problem_for(self, *, is_remote: bool) -> str | None:
        """What a caller is told of it. What is in the operator's file is not for every caller to know."""
        if self.problem is None or not (is_remote or self._operators_are_fixed):
            return self.problem
        return "The operator's configuration has a mistake. emceepee's log says more."

    def set_disabled(self, specs: Iterable[BackendSpec]) -> None:
        """Those that are disabled in the operator's file, from now on."""
        disabled = {spec.name: spec for spec in specs}
        if disabled != self._disabled_operators:
            self._disabled_operators = disabled
            for principal in list(self._watchers):
                self._tell_disabled(principal)

    async def apply(self, changes: ServerChanges) -> None:
        """Returns when every session has the servers as they are configured now, and nothing is left of the others.

        A server that a principal has added under the same name stays.
        """
        await self._end_of_trials({spec.name for spec in changes.added})
        work = []
        for name in changes.removed:
            if self._operators.pop(name, None) is not None:
                work += [watcher.on_server_removed(name) for watcher in self._users_of_operators(name)]
        for spec in (*changes.changed, *changes.reworded, *changes.added):
            if spec.name not in self._operators and spec in changes.reworded:
                continue  # a caller has removed it, and other words do not bring it back
            spec = self._operators[spec.name] = self._for_callers(spec)
            work += [watcher.on_server_configured(spec) for watcher in self._users_of_operators(spec.name)]
        await asyncio.gather(*work)

    async def _end_of_trials(self, names: set[str]) -> None:
        while trials := [trial.outcome for (_, name), trial in self._trials.items() if name in names]:
            await asyncio.wait(trials)

    def _users_of_operators(self, name: str) -> list[Watcher]:
        """The sessions for which that name is the operator's server."""
        return [
            watcher
            for principal, watchers in self._watchers.items()
            if name not in self._added.get(principal, {})
            for watcher in watchers
        ]

    # The store.

    async def load(self, principal: str) -> None:
        """Read the principal's servers, unless that was done before."""
        if self._repository is None or principal in self._loaded:
            return
        try:
            stored = await self._repository.read(principal)
        except StoreError as error:
            log.warning("servers_not_loaded", error=str(error))
            return
        if principal not in self._loaded:  # by another session meanwhile
            self._loaded.add(principal)
            if disabled := read_specs(stored, are_disabled=True):
                self._disabled[principal] = disabled
            self._added[principal] = read_specs(stored) | self._added.get(principal, {})
            if not self._added[principal]:
                del self._added[principal]

    def when_unsaved(self, report: Callable[[], None]) -> None:
        """Have it called when something waits for the next `reload`."""
        if self._repository is not None:
            self._repository.on_unsaved = report

    def has_unsaved(self, principal: str) -> bool:
        """Whether a change of its servers could not be stored yet."""
        return self._repository is not None and bool(self._repository.unsaved_of(principal))

    async def save(self, principal: str, spec: BackendSpec) -> None:
        """Before it is added. Raises: InvalidArguments, NotAllowed, as `ServerRepository.add`."""
        if self._repository is not None:
            await self._repository.add(principal, spec)

    async def save_change(self, principal: str, spec: BackendSpec, *, is_disabled: bool = False) -> None:
        """Before it is changed. Raises: NotAllowed, EmceepeeError, as `ServerRepository.replace`."""
        if self._repository is not None:
            await self._repository.replace(principal, spec, is_disabled=is_disabled)

    async def _remove_from_store(self, principal: str, name: str) -> None:
        if self._repository is not None:
            await self._repository.remove(principal, name)

    async def reload(self) -> None:
        """Write what could not be written, and take over what other processes changed. Raises: StoreError."""
        if self._repository is None:
            return
        await self._repository.write_unsaved()
        are_all = [await self._take_over(self._repository, principal) for principal in list(self._loaded)]
        if not all(are_all):
            raise BeingChanged("Servers that other processes have changed are being changed here.")

    async def catch_up(self, principal: str) -> None:
        """Take over what other processes changed of one principal's servers: who changes one wants to know."""
        if self._repository is None or principal not in self._loaded:
            return
        try:
            await self._take_over(self._repository, principal)
        except StoreError as error:
            log.warning("servers_not_loaded", error=str(error))

    async def _take_over(self, repository: ServerRepository, principal: str) -> bool:
        """Have the servers as they are stored; sessions hear of each what they would hear if it were changed here.

        What is being changed here just now is left as it is: False if it was changed elsewhere, too.
        """
        stored = await self._read(repository, principal)
        enabled, disabled = read_specs(stored), read_specs(stored, are_disabled=True)
        busy = repository.unsaved_of(principal) | {name for owner, name in self._trials if owner == principal}
        known = self._added.get(principal, {})
        wanted = _unless_busy(enabled, known, busy)
        wanted_disabled = _unless_busy(disabled, self._disabled.get(principal, {}), busy)
        self._take_over_disabled(principal, wanted_disabled)
        await self._take_over_enabled(principal, compare_servers(known.values(), wanted.values()))
        return (wanted, wanted_disabled) == (enabled, disabled)

    async def _read(self, repository: ServerRepository, principal: str) -> Sequence[ServerConfiguration]:
        """Read again if anything was changed here meanwhile: what was read may be from before that."""
        while True:
            before = self._changes
            stored = await repository.read(principal)
            if self._changes == before:
                return stored

    def _take_over_disabled(self, principal: str, disabled: Specs) -> None:
        if disabled != self._disabled.get(principal, {}):
            self._changes += 1
            self._disabled.pop(principal, None)
            if disabled:
                self._disabled[principal] = disabled
            self._tell_disabled(principal)

    async def _take_over_enabled(self, principal: str, changes: ServerChanges) -> None:
        """All is decided before any session is waited for: callers change more meanwhile."""
        telling = []
        for name in changes.removed:
            self._forget(principal, name)
            telling.append(self._tell_removed(principal, name))
        in_place_of_operators = [spec for spec in changes.added if spec.name in self._operators]
        for spec in (*changes.changed, *changes.reworded, *in_place_of_operators):
            self._put(principal, spec)
            telling.append(self._tell_configured(principal, spec))
        for spec in changes.added:
            if spec.name not in self._operators:
                self.add(principal, spec)
        await asyncio.gather(*telling)


def _unless_busy(stored: Specs, here: Specs, busy: set[str]) -> Specs:
    """What is stored, but for what is busy as it is here."""
    kept = {name: spec for name, spec in here.items() if name in busy}
    return {name: spec for name, spec in stored.items() if name not in busy} | kept
