"""The differences between an earlier and a later list of servers."""

from collections.abc import Iterable
from dataclasses import dataclass

from emceepee.backends.spec import BackendSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerChanges:
    """A server in none of these fields is unchanged."""

    added: tuple[BackendSpec, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[BackendSpec, ...] = ()  # their connections are replaced
    reworded: tuple[BackendSpec, ...] = ()  # the same servers with a different description

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.reworded)

    def summary(self) -> dict[str, list[str]]:
        """Return the server names by kind of change, for a log."""
        by_kind = {"added": self.added, "changed": self.changed, "reworded": self.reworded}
        names = {kind: [spec.name for spec in specs] for kind, specs in by_kind.items()} | {"removed": [*self.removed]}
        return {kind: found for kind, found in names.items() if found}


def compare_servers(before: Iterable[BackendSpec], after: Iterable[BackendSpec]) -> ServerChanges:
    old, new = ({spec.name: spec for spec in specs} for specs in (before, after))
    kept = [(old[name], spec) for name, spec in new.items() if name in old]
    return ServerChanges(
        added=tuple(spec for name, spec in new.items() if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(spec for was, spec in kept if was != spec),
        reworded=tuple(spec for was, spec in kept if was == spec and was.words != spec.words),
    )
