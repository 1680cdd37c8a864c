"""Which of a server's tools a caller may see and call."""

from dataclasses import dataclass
from fnmatch import fnmatchcase


@dataclass(frozen=True, slots=True)
class ToolFilter:
    """Names or globs. Denied beats allowed; with nothing allowed by name, everything not denied is."""

    allowed: tuple[str, ...] = ()
    denied: tuple[str, ...] = ()

    def permits(self, tool: str) -> bool:
        if any(fnmatchcase(tool, pattern) for pattern in self.denied):
            return False
        return not self.allowed or any(fnmatchcase(tool, pattern) for pattern in self.allowed)
