"""A Lua script, which Redis runs atomically."""

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LuaScript:
    """A Lua script. Redis identifies it by `sha`."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode()).hexdigest())
