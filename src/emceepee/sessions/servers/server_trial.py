"""A server that is tried before it is added or changed. Other callers wait for the outcome."""

import asyncio
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from emceepee.backends.spec import BackendSpec
from emceepee.errors import EmceepeeError


@dataclass(slots=True, eq=False)
class Trial:
    """A server that a caller adds or changes. `outcome` gets the error of a failed trial; cancellation cancels it."""

    spec: BackendSpec
    replaces: bool = False  # whether it replaces an existing server
    is_cancelled: bool = False  # its connection is still closing
    outcome: "asyncio.Future[None]" = field(default_factory=lambda: asyncio.get_running_loop().create_future())

    def end(self, error: BaseException | None) -> None:
        if error is None:
            self.outcome.set_result(None)
        elif isinstance(error, EmceepeeError):
            self.outcome.set_exception(error)
            self.outcome.exception()  # mark the exception as retrieved: there may be no waiter
        else:
            self.outcome.cancel()


class Trials:
    """The trials of all principals. A principal tries at most one server per name."""

    def __init__(self) -> None:
        self._by_key: dict[tuple[str, str], Trial] = {}

    def find(self, principal: str, name: str) -> Trial | None:
        return self._by_key.get((principal, name))

    def find_same(self, principal: str, spec: BackendSpec) -> Trial | None:
        """Return a trial to wait for: one with the same settings, or a cancelled one that will free the name."""
        trial = self.find(principal, spec.name)
        return trial if trial is not None and (trial.is_cancelled or trial.spec == spec) else None

    def names_of(self, principal: str) -> set[str]:
        return {name for owner, name in self._by_key if owner == principal}

    @contextmanager
    def run(self, principal: str, spec: BackendSpec, *, replaces: bool) -> Iterator[Trial]:
        """Run a trial inside the context, whose error or end is its outcome."""
        trial = self._by_key[principal, spec.name] = Trial(spec, replaces)
        try:
            yield trial
        except BaseException as error:
            trial.end(error)
            raise
        else:
            trial.end(None)
        finally:
            del self._by_key[principal, spec.name]

    async def wait_for_change(self, principal: str, name: str) -> None:
        """Wait for a trial of other settings to end. A trial that fails restores the earlier settings."""
        while (trial := self.find(principal, name)) is not None and trial.replaces:
            await asyncio.wait({trial.outcome})

    async def wait_for_names(self, names: Collection[str]) -> None:
        """Wait until no principal tries a server with one of these names."""
        while trials := [trial.outcome for (_, name), trial in self._by_key.items() if name in names]:
            await asyncio.wait(trials)
