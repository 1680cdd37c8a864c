"""Where state is kept: in memory, in a file that the user names or that is in its usual place, or in Redis."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from emceepee.paths import SYNCS, state_folder
from emceepee.store.redis.connection.address import BadAddress, RedisAddress, is_redis_url, parse_address

KEY_VARIABLE = "EMCEEPEE_STATE_KEY"
MEMORY, SQLITE = "memory", "sqlite"
FILE_NAME = "state.db"
EXPECTED = "memory, sqlite, sqlite:PATH or redis://HOST"


class BadLocation(ValueError):
    """The text says what was expected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLocation:
    """In a file, in Redis, or with neither in memory. `key` is the one for secrets, if it is not in the file beside."""

    path: Path | None = None
    redis: RedisAddress | None = None
    survives_power_loss: bool = False
    key: str | None = field(default=None, repr=False)

    @property
    def is_memory(self) -> bool:
        return self.path is None and self.redis is None


def parse_location(text: str, environment: Mapping[str, str], *, sync: str = SYNCS[0]) -> StateLocation:
    """`memory`, `sqlite`, `sqlite:PATH` or a URL of Redis. Raises: BadLocation."""
    if is_redis_url(text):
        try:
            return StateLocation(redis=parse_address(text), key=environment.get(KEY_VARIABLE) or None)
        except BadAddress as error:
            raise BadLocation(str(error)) from None
    engine, _, path = text.partition(":")
    if engine == MEMORY and not path:
        return StateLocation()
    if engine != SQLITE:
        shown = text.rpartition("@")[2]  # before it, in a URL with a slip, may stand a password
        raise BadLocation(f"expected {EXPECTED}, found {shown!r}")
    try:
        place = Path(path).expanduser().absolute() if path else usual_path(environment, sys.platform)
    except RuntimeError:
        raise BadLocation("this user has no home directory; name a file with sqlite:PATH, or say memory") from None
    return StateLocation(path=place, survives_power_loss=sync == "full", key=environment.get(KEY_VARIABLE) or None)


def usual_path(environment: Mapping[str, str], platform: str) -> Path:
    """In the user's directory for what programs remember. Raises: RuntimeError if there is no home."""
    return state_folder(environment, platform) / FILE_NAME
