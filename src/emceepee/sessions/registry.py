"""The server configurations that sessions share: the operator's serve everyone, a principal's its own sessions."""

import asyncio
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from emceepee.backends.spec import BackendSpec
from emceepee.errors import EmceepeeError, ErrorCode, InvalidArguments, NotAllowed, UnknownBackend
from emceepee.sessions.server_repository import ServerRepository
from emceepee.state.limits import Limits


class Watcher(Protocol):
    """A session that follows the registry."""

    def on_server_added(self, spec: BackendSpec) -> None: ...
    async def on_server_removed(self, name: str) -> None: ...


@dataclass(slots=True, eq=False)
class Trial:
    """A server that someone is adding just now. `outcome` is the error if it fails, and cancelled if it is given up."""

    spec: BackendSpec
    outcome: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def end(self, error: BaseException | None) -> None:
        if error is None:
            self.outcome.set_result(None)
        elif isinstance(error, EmceepeeError):
            self.outcome.set_exception(error)
            self.outcome.exception()  # nobody may be waiting for it
        else:
            self.outcome.cancel()


class ServerRegistry:
    """Who has which servers. Every change reaches all sessions of the principal."""

    def __init__(
        self,
        operators: Iterable[BackendSpec],
        repository: ServerRepository,
        *,
        operators_are_fixed: bool = False,
        most_added: int = Limits().servers_per_principal,
    ) -> None:
        self._operators = {spec.name: spec for spec in operators}
        self._operators_are_fixed, self._most_added = operators_are_fixed, most_added
        self._repository = repository
        self._added: dict[str, dict[str, BackendSpec]] = {}
        self._watchers: dict[str, list[Watcher]] = {}
        self._trials: dict[tuple[str, str], Trial] = {}

    async def join(self, principal: str, watcher: Watcher) -> dict[str, BackendSpec]:
        """Follow a principal's servers from now on; returns those there are."""
        if principal not in self._added:
            self._added[principal] = {spec.name: spec for spec in await self._repository.all(principal)}
        self._watchers.setdefault(principal, []).append(watcher)
        return self._operators | self._added[principal]

    def leave(self, principal: str, watcher: Watcher) -> None:
        watchers = self._watchers.get(principal, [])
        if watcher in watchers:
            watchers.remove(watcher)
        if not watchers:
            self._watchers.pop(principal, None)
            self._added.pop(principal, None)

    def trial_of(self, principal: str, spec: BackendSpec) -> Trial | None:
        """The same server, if someone else is adding it just now."""
        trial = self._trials.get((principal, spec.name))
        return trial if trial is not None and trial.spec == spec else None

    @contextmanager
    def reserve_name(self, principal: str, spec: BackendSpec) -> Iterator[None]:
        """Hold a name while its server is being tried, so that two callers do not both add it."""
        name, key = spec.name, (principal, spec.name)
        if name in self._operators or name in self._added.get(principal, {}) or key in self._trials:
            raise InvalidArguments(
                f'The name "{name}" is in use by a server with another configuration. Choose another name, '
                "or call remove_server first.",
                details={"server": name},
            )
        self._check_room(principal)
        trial = self._trials[key] = Trial(spec)
        try:
            yield
        except BaseException as error:
            trial.end(error)
            raise
        else:
            trial.end(None)
        finally:
            del self._trials[key]

    def _check_room(self, principal: str) -> None:
        being_added = sum(owner == principal for owner, _ in self._trials)
        if len(self._added.get(principal, {})) + being_added >= self._most_added:
            raise EmceepeeError(
                f"{self._most_added} servers were added already, which is the limit. Remove one with remove_server.",
                code=ErrorCode.LIMIT_EXCEEDED,
            )

    async def add(self, principal: str, spec: BackendSpec, *, by: Watcher) -> None:
        await self._repository.add(principal, spec)
        self._added.setdefault(principal, {})[spec.name] = spec
        for watcher in list(self._watchers.get(principal, [])):
            if watcher is not by:
                watcher.on_server_added(spec)

    async def remove(self, principal: str, name: str, *, is_remote: bool = False) -> None:
        """Returns when no session of the principal uses it any more. The operator's are fixed for remote callers.

        Raises:
            UnknownBackend, NotAllowed
        """
        if name in self._operators:
            if self._operators_are_fixed or is_remote:
                raise NotAllowed(f'Server "{name}" is the operator\'s: it serves everyone and cannot be removed here.')
            del self._operators[name]
        elif not await self._repository.remove(principal, name):
            raise UnknownBackend(name, known=[*self._operators, *self._added.get(principal, {})])
        self._added.get(principal, {}).pop(name, None)
        watchers = list(self._watchers.get(principal, []))
        await asyncio.gather(*(watcher.on_server_removed(name) for watcher in watchers))
