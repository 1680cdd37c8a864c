"""The interface through which this engine sends commands to Redis, for all topologies."""

from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

from emceepee.store.redis.connection.redis_connection import Word
from emceepee.store.redis.scripts.lua_script import LuaScript


class ScriptCall(NamedTuple):
    """A script with its keys and arguments. All keys of a call are on one node."""

    script: LuaScript
    keys: Sequence[str]
    arguments: Sequence[Word]


class UnknownOutcome(Exception):
    """A command was sent but got no reply, so it may have run or may still run. `because` is the error for callers."""

    def __init__(self, because: Exception) -> None:
        super().__init__(str(because))
        self.because = because


class Commands(Protocol):
    """Calls to one node take effect in the order in which they are made.

    Raises: StoreUnavailable if the call certainly had no effect; UnknownOutcome if that is unknown.
    """

    @property
    def is_spread(self) -> bool:
        """Whether there is more than one node."""
        ...

    async def run_all(self, calls: Sequence[ScriptCall]) -> list[Any]:
        """Run the scripts and return one reply for each."""
        ...

    async def execute(self, *words: Word) -> Any:
        """Run a plain command. Its second word must be its first key."""
        ...

    async def close(self) -> None: ...


async def run_script(commands: Commands, script: LuaScript, keys: Sequence[str], *arguments: Word) -> Any:
    """Run one script for a caller that need not know whether a failed call took effect. Raises: StoreUnavailable."""
    try:
        (reply,) = await commands.run_all([ScriptCall(script, keys, arguments)])
    except UnknownOutcome as error:
        raise error.because from None
    return reply


async def run_command(commands: Commands, *words: Word) -> Any:
    """Run a plain command for a caller that need not know whether it took effect. Raises: StoreUnavailable."""
    try:
        return await commands.execute(*words)
    except UnknownOutcome as error:
        raise error.because from None
