"""A program in Lua that Redis runs as one step."""

import hashlib
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class LuaScript:
    """`sha` is how Redis calls it."""

    text: str
    sha: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "sha", hashlib.sha1(self.text.encode()).hexdigest())
