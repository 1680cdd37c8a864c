"""Which of a server's tools a caller may see and call."""

import re
from dataclasses import dataclass, field
from fnmatch import translate

LONGEST_NAME = 1000  # of a tool, if any rule exists: a longer name is not permitted
MOST_REMEMBERED = 10_000  # decisions


def has_wildcards(glob: str) -> bool:
    return any(letter in glob for letter in "*?[")


class _Globs:
    """A set of globs.

    Plain names are looked up; wildcards are compiled once, into regexes without runaway backtracking.
    """

    def __init__(self, globs: tuple[str, ...]) -> None:
        self._names = frozenset(glob for glob in globs if not has_wildcards(glob))
        self._matches = [re.compile(translate(glob)).match for glob in globs if has_wildcards(glob)]

    def fit(self, name: str) -> bool:
        return name in self._names or any(matches(name) for matches in self._matches)


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Names or globs. Denied overrides allowed. If `allowed` is empty, every tool that is not denied is allowed."""

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()
    _allows: _Globs = field(init=False, repr=False, compare=False)
    _denies: _Globs = field(init=False, repr=False, compare=False)
    _decided: dict[str, bool] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_allows", _Globs(self.allowed))
        object.__setattr__(self, "_denies", _Globs(self.denied))

    @property
    def permits_all(self) -> bool:
        return not self.allowed and not self.denied

    def permits(self, tool: str) -> bool:
        if self.permits_all:
            return True
        if len(tool) > LONGEST_NAME:
            return False
        known = self._decided.get(tool)
        if known is None:
            known = self._decide(tool)
            if len(self._decided) >= MOST_REMEMBERED:
                self._decided.clear()
            self._decided[tool] = known
        return known

    def _decide(self, tool: str) -> bool:
        return not self._denies.fit(tool) and (not self.allowed or self._allows.fit(tool))
