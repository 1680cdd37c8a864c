"""How the rest of this engine speaks to Redis, wherever it is."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from emceepee.store.redis.connection.wire import Word
from emceepee.store.redis.scripts.script import LuaScript


class ScriptCall(NamedTuple):
    """A script, what it is about, and what it is told. All keys of a call are on one node."""

    script: LuaScript
    keys: Sequence[str]
    arguments: Sequence[Word]


class UnknownOutcome(Exception):
    """It was sent, and no answer came: it may have happened, or still happen. `because` is what to tell the caller."""

    def __init__(self, because: Exception) -> None:
        super().__init__(str(because))
        self.because = because


class Commands(Protocol):
    """Calls about one node take effect in the order in which they were asked for.

    Raises: StoreUnavailable if it surely did not happen; Unknown if nobody knows.
    """

    @property
    def is_spread(self) -> bool:
        """Whether there is more than one node."""
        ...

    async def run_all(self, calls: Sequence[ScriptCall]) -> list[Any]:
        """One reply each."""
        ...

    async def execute(self, *words: Word) -> Any:
        """A plain command; the first key is its second word."""
        ...

    async def close(self) -> None: ...
