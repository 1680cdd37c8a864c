"""The server configurations that sessions share: the operator's servers, and each principal's own."""

import asyncio
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from itertools import count
from typing import Protocol

from emceepee.backends.spec import BackendSpec, UnusableTarget
from emceepee.errors import EmceepeeError, ErrorCode, InvalidArguments, NotAllowed, UnknownBackend
from emceepee.sessions.servers.server_changes import ServerChanges, compare_servers
from emceepee.sessions.servers.server_repository import ServerRepository
from emceepee.sessions.servers.server_trial import Trial, Trials
from emceepee.sessions.servers.stored_configuration import read_specs
from emceepee.store.store import ServerConfiguration, Store, StoreError
from emceepee.surface import call_to
from emceepee.telemetry.logs import EventLog

log = EventLog("sessions")
Specs = dict[str, BackendSpec]
SERVERS_PER_PRINCIPAL = 100  # added by callers; the servers in the configuration do not count
LONGEST_STEM = 90  # longest part of a name in use that a proposed free name repeats
MISTAKE = "the operator's configuration has a mistake; emceepee's log says more"


class BeingChanged(StoreError):
    """Other processes changed a server that is also being changed here. Their change is not applied yet."""


class Watcher(Protocol):
    """A session that follows the registry."""

    def on_server_added(self, spec: BackendSpec) -> None: ...
    async def on_server_removed(self, name: str) -> None: ...
    async def on_server_configured(self, spec: BackendSpec) -> None: ...
    def on_disabled_changed(self) -> None: ...


class ServerRegistry:
    """The servers of every principal. Each change reaches all sessions of the principal."""

    def __init__(
        self,
        operators: Iterable[BackendSpec],
        *,
        operators_are_fixed: bool = False,
        store: Store | None = None,
        has_replicas: Callable[[], bool] = lambda: False,
    ) -> None:
        """With a store, added servers are stored there and shared with the other processes that use it."""
        self._operators_are_fixed = operators_are_fixed
        self._operators = {spec.name: self._for_callers(spec) for spec in operators}
        self._disabled_operators: Specs = {}
        self._added: dict[str, Specs] = {}
        self._disabled: dict[str, Specs] = {}  # added, then disabled
        self._watchers: dict[str, list[Watcher]] = {}
        self.trials = Trials()
        self._repository = None if store is None else ServerRepository(store)
        self._loaded: set[str] = set()  # principals whose servers were read from the store
        self._changes = 0  # number of changes to added or disabled servers
        self.ends_with_caller = False  # whether a caller started the process; added servers end with it
        self._has_replicas = has_replicas  # whether other replicas follow the same configuration
        self.problem: str | None = None  # why the operator's current configuration is not in use

    @property
    def may_have_forgotten(self) -> bool:
        """Whether a caller may remember servers of an earlier run. False once it has added a server in this one."""
        return self.ends_with_caller and self._changes == 0

    def join(self, principal: str, watcher: Watcher) -> Specs:
        """Notify `watcher` of changes to the principal's servers from now on. Return the current servers."""
        self._watchers.setdefault(principal, []).append(watcher)
        return self._operators | self._added.get(principal, {})

    def leave(self, principal: str, watcher: Watcher) -> None:
        watchers = self._watchers.get(principal, [])
        if watcher in watchers:
            watchers.remove(watcher)
        if not watchers:
            self._watchers.pop(principal, None)

    def reserve_name(
        self, principal: str, spec: BackendSpec, *, replaces: bool = False
    ) -> AbstractContextManager[Trial]:
        """Reserve a name while its server is being tried, so that two callers cannot both add it (race).

        With `replaces`, a server of that name must exist. Raises: InvalidArguments, NotAllowed, UnknownBackend.
        """
        name = spec.name
        if replaces:
            self.find_added(principal, name)
        is_taken = not replaces and (
            name in self._operators or name in self._added.get(principal, {}) or self.is_disabled(principal, name)
        )
        if is_taken or self.trials.find(principal, name) is not None:
            raise self._name_in_use(principal, name)
        if not replaces:
            self._check_room(principal)
        return self.trials.run(principal, spec, replaces=replaces)

    def _for_callers(self, spec: BackendSpec) -> BackendSpec:
        """Hide mistakes in the operator's file from callers where several principals share this process."""
        if not self._operators_are_fixed or not isinstance(spec.target, UnusableTarget):
            return spec
        return replace(spec, target=replace(spec.target, reason=MISTAKE))

    def _name_in_use(self, principal: str, name: str) -> InvalidArguments:
        added, disabled = self._added.get(principal, {}), self._disabled.get(principal, {})
        if (there := added.get(name) or disabled.get(name)) is not None:
            whose = "by a server with another configuration"
            whose += "" if there.added is None else f": {there.added}"
            whose += ", and it is disabled" if name in disabled else ""
        elif name in self._operators:
            whose = "by a server with another configuration in the operator's file"
        else:
            whose = "by a server with another configuration that another session is adding"
        used = {*self._operators, *added, *disabled, *self.trials.names_of(principal)}
        free = next(other for number in count(2) if (other := f"{name[:LONGEST_STEM]}-{number}") not in used)
        return InvalidArguments(
            f'The name "{name}" is in use {whose}. All sessions of one user share servers, so another session has the '
            f'same names. Choose another name, such as "{free}", or call {call_to("remove_server")} first if no one '
            "needs that server. Only callers with the token of another user have servers of their own.",
            details={"server": name, "freeName": free},
        )

    def _check_room(self, principal: str) -> None:
        there = len(self._added.get(principal, {})) + len(self._disabled.get(principal, {}))
        if there + len(self.trials.names_of(principal)) >= SERVERS_PER_PRINCIPAL:
            raise EmceepeeError(
                f"{SERVERS_PER_PRINCIPAL} servers were added already, which is the limit. Remove one with "
                f"{call_to('remove_server')}.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )

    def add(self, principal: str, spec: BackendSpec, *, by: Watcher | None = None) -> None:
        """Add the server to the principal's servers, and notify its sessions except `by`."""
        self._put(principal, spec)
        for watcher in list(self._watchers.get(principal, [])):
            if watcher is not by:
                watcher.on_server_added(spec)

    async def remove(self, principal: str, name: str, *, is_remote: bool = False) -> None:
        """Remove the server, and return when no session of the principal uses it any more.

        Remote callers cannot remove the operator's servers. With other replicas, no caller can, because the replicas
        would continue to use them.

        If two servers have that name, remove the principal's own. Raises: UnknownBackend, NotAllowed.
        """
        await self.trials.wait_for_change(principal, name)
        if self.is_disabled(principal, name):
            self._remove_disabled(principal, name)
            await self._remove_from_store(principal, name)
            self._notify_disabled(principal)
            return
        if self.is_operators(principal, name):
            if self._operators_are_fixed or is_remote:
                raise NotAllowed(f'Server "{name}" is the operator\'s: it serves everyone and cannot be removed here.')
            if self._has_replicas():
                raise NotAllowed(
                    f'Server "{name}" is in the configuration file, which other replicas of emceepee also follow. '
                    "Remove it there: edit the file, or use the command `emceepee servers remove`."
                )
            del self._operators[name]
        else:
            self._forget(principal, name)
            await self._remove_from_store(principal, name)
        await self._notify_removed(principal, name)

    async def _notify_removed(self, principal: str, name: str) -> None:
        """Notify sessions of the removal. If the operator has a server of that name, it takes over the name."""
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

    # Changes to added servers.

    def is_operators(self, principal: str, name: str) -> bool:
        """Whether the name refers to a server of the configuration file for this principal."""
        return name in self._operators and name not in self._added.get(principal, {})

    def disabled_of(self, principal: str) -> list[BackendSpec]:
        """Return the disabled servers that the principal added."""
        return list(self._disabled[principal].values()) if principal in self._disabled else []

    def disabled_operators_of(self, principal: str) -> list[BackendSpec]:
        """Return disabled servers of the file with names unused by the principal; none with several principals."""
        if self._operators_are_fixed:
            return []
        added, disabled = self._added.get(principal, {}), self._disabled.get(principal, {})
        return [spec for name, spec in self._disabled_operators.items() if name not in added and name not in disabled]

    def is_disabled(self, principal: str, name: str) -> bool:
        return name in self._disabled.get(principal, {})

    def find_added(self, principal: str, name: str) -> BackendSpec:
        """Return a server that the principal added, even if it is disabled. Raises: NotAllowed, UnknownBackend."""
        added, disabled = self._added.get(principal, {}), self._disabled.get(principal, {})
        if name in added or name in disabled:
            return added[name] if name in added else disabled[name]
        if name in self._operators:
            raise NotAllowed(
                f'Server "{name}" is in the configuration file, and is changed there: edit the file, or use the '
                "command `emceepee servers`. The change takes effect at once."
            )
        raise UnknownBackend(name, known=[*self._operators, *added, *disabled])

    async def change(self, principal: str, spec: BackendSpec, *, by: Watcher | None = None) -> None:
        """Replace the settings of a server and enable it. Notify the principal's sessions except `by`."""
        self._remove_disabled(principal, spec.name)
        self._put(principal, spec)
        await self._notify_configured(principal, spec, by=by)

    async def _notify_configured(self, principal: str, spec: BackendSpec, *, by: Watcher | None = None) -> None:
        others = [watcher for watcher in self._watchers.get(principal, []) if watcher is not by]
        await asyncio.gather(*(watcher.on_server_configured(spec) for watcher in others))

    async def disable(self, principal: str, name: str) -> None:
        """Disable the server, and return when no session of the principal uses it any more. Raises: EmceepeeError."""
        await self.trials.wait_for_change(principal, name)
        spec = self.find_added(principal, name)
        if self.is_disabled(principal, name):
            return
        await self.save_change(principal, spec, is_disabled=True)
        if self._added.get(principal, {}).get(name) == spec:  # it may have been removed during the save
            self._forget(principal, name)
            self._disabled.setdefault(principal, {})[name] = spec
            await self._notify_removed(principal, name)
            self._notify_disabled(principal)

    async def enable(self, principal: str, name: str) -> None:
        """Enable the server. It connects on first use. Raises: EmceepeeError."""
        await self.trials.wait_for_change(principal, name)
        spec = self.find_added(principal, name)
        if not self.is_disabled(principal, name):
            return
        await self.save_change(principal, spec)
        if not self.is_disabled(principal, name):  # it was removed during the save
            return
        if name in self._operators:  # its sessions use the operator's server under that name
            await self.change(principal, spec)
        else:
            self._remove_disabled(principal, name)
            self.add(principal, spec)

    def _remove_disabled(self, principal: str, name: str) -> BackendSpec | None:
        disabled = self._disabled.get(principal, {})
        spec = disabled.pop(name, None)
        self._changes += spec is not None
        if not disabled:
            self._disabled.pop(principal, None)
        return spec

    def _notify_disabled(self, principal: str) -> None:
        for watcher in list(self._watchers.get(principal, [])):
            watcher.on_disabled_changed()

    # Changes of the operator's configuration.

    def problem_for(self, *, is_remote: bool) -> str | None:
        """Return the problem as a caller may see it: not every caller may learn the content of the operator's file."""
        if self.problem is None or not (is_remote or self._operators_are_fixed):
            return self.problem
        return "The operator's configuration has a mistake. emceepee's log says more."

    def set_disabled(self, specs: Iterable[BackendSpec]) -> None:
        """Set the servers that are disabled in the operator's file."""
        disabled = {spec.name: spec for spec in specs}
        if disabled != self._disabled_operators:
            self._disabled_operators = disabled
            for principal in list(self._watchers):
                self._notify_disabled(principal)

    async def apply(self, changes: ServerChanges) -> None:
        """Apply the operator's new configuration. Return when all sessions use it and replaced connections have ended.

        A server that a principal has added under the same name stays.
        """
        await self.trials.wait_for_names({spec.name for spec in changes.added})
        work = []
        for name in changes.removed:
            if self._operators.pop(name, None) is not None:
                work += [watcher.on_server_removed(name) for watcher in self._users_of_operators(name)]
        for spec in (*changes.changed, *changes.reworded, *changes.added):
            if spec.name not in self._operators and spec in changes.reworded:
                continue  # a caller has removed the server, and a new description does not restore it
            spec = self._operators[spec.name] = self._for_callers(spec)
            work += [watcher.on_server_configured(spec) for watcher in self._users_of_operators(spec.name)]
        await asyncio.gather(*work)

    def _users_of_operators(self, name: str) -> list[Watcher]:
        """Return the sessions for which that name is the operator's server."""
        return [
            watcher
            for principal, watchers in self._watchers.items()
            if name not in self._added.get(principal, {})
            for watcher in watchers
        ]

    # The store.

    async def load(self, principal: str) -> None:
        """Read the principal's servers from the store, unless they were read before."""
        if self._repository is None or principal in self._loaded:
            return
        try:
            stored = await self._repository.read(principal)
        except StoreError as error:
            log.warning("servers_not_loaded", error=str(error))
            return
        if principal not in self._loaded:  # another session may have read them during the wait
            self._loaded.add(principal)
            if disabled := read_specs(stored, are_disabled=True):
                self._disabled[principal] = disabled
            self._added[principal] = read_specs(stored) | self._added.get(principal, {})
            if not self._added[principal]:
                del self._added[principal]

    @property
    def has_any_unsaved(self) -> bool:
        """Whether changes wait for the next `reload`."""
        return self._repository is not None and self._repository.has_unsaved

    def has_unsaved(self, principal: str) -> bool:
        """Whether a change of the principal's servers is not stored yet."""
        return self._repository is not None and bool(self._repository.unsaved_of(principal))

    async def save(self, principal: str, spec: BackendSpec) -> None:
        """Store a server before it is added. Raises: InvalidArguments, NotAllowed, as `ServerRepository.add`."""
        if self._repository is not None:
            await self._repository.add(principal, spec)

    async def save_change(self, principal: str, spec: BackendSpec, *, is_disabled: bool = False) -> None:
        """Store a server before it is changed. Raises: NotAllowed, EmceepeeError, as `ServerRepository.replace`."""
        if self._repository is not None:
            await self._repository.replace(principal, spec, is_disabled=is_disabled)

    async def _remove_from_store(self, principal: str, name: str) -> None:
        if self._repository is not None:
            await self._repository.remove(principal, name)

    async def reload(self) -> None:
        """Write unsaved changes, and apply changes of other processes. Raises: StoreError."""
        if self._repository is None:
            return
        await self._repository.write_unsaved()
        are_all = [await self._reconcile(self._repository, principal) for principal in list(self._loaded)]
        if not all(are_all):
            raise BeingChanged("This process is changing servers that other processes have changed.")

    async def catch_up(self, principal: str) -> None:
        """Apply other processes' changes to one principal's servers, so that a caller changes the current state."""
        if self._repository is None or principal not in self._loaded:
            return
        try:
            await self._reconcile(self._repository, principal)
        except StoreError as error:
            log.warning("servers_not_loaded", error=str(error))

    async def _reconcile(self, repository: ServerRepository, principal: str) -> bool:
        """Reconcile with the store and notify sessions, as for local changes.

        Servers that are being changed here stay as they are. Return False if the store has other changes for them.
        """
        stored = await self._read(repository, principal)
        enabled, disabled = read_specs(stored), read_specs(stored, are_disabled=True)
        busy = repository.unsaved_of(principal) | self.trials.names_of(principal)
        known = self._added.get(principal, {})
        next_enabled = _unless_busy(enabled, known, busy)
        next_disabled = _unless_busy(disabled, self._disabled.get(principal, {}), busy)
        self._set_disabled(principal, next_disabled)
        await self._change_enabled(principal, compare_servers(known.values(), next_enabled.values()))
        return (next_enabled, next_disabled) == (enabled, disabled)

    async def _read(self, repository: ServerRepository, principal: str) -> Sequence[ServerConfiguration]:
        """Read again if a local change happened during the read (race): the result may predate it."""
        while True:
            before = self._changes
            stored = await repository.read(principal)
            if self._changes == before:
                return stored

    def _set_disabled(self, principal: str, disabled: Specs) -> None:
        if disabled != self._disabled.get(principal, {}):
            self._changes += 1
            self._disabled.pop(principal, None)
            if disabled:
                self._disabled[principal] = disabled
            self._notify_disabled(principal)

    async def _change_enabled(self, principal: str, changes: ServerChanges) -> None:
        """Change the registry before waiting for any session: callers make more changes during the wait."""
        notifications = []
        for name in changes.removed:
            self._forget(principal, name)
            notifications.append(self._notify_removed(principal, name))
        in_place_of_operators = [spec for spec in changes.added if spec.name in self._operators]
        for spec in (*changes.changed, *changes.reworded, *in_place_of_operators):
            self._put(principal, spec)
            notifications.append(self._notify_configured(principal, spec))
        for spec in changes.added:
            if spec.name not in self._operators:
                self.add(principal, spec)
        await asyncio.gather(*notifications)


def _unless_busy(stored: Specs, here: Specs, busy: set[str]) -> Specs:
    """Return the stored servers, but keep the local settings of busy ones."""
    kept = {name: spec for name, spec in here.items() if name in busy}
    return {name: spec for name, spec in stored.items() if name not in busy} | kept
