"""Where state is stored: in memory, in a file at the given or the default path, or in Redis."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from emceepee.paths import SYNCS, state_folder
from emceepee.store.redis.connection.redis_address import BadAddress, RedisAddress, is_redis_url, parse_address

KEY_VARIABLE = "EMCEEPEE_STATE_KEY"
MEMORY, SQLITE = "memory", "sqlite"
FILE_NAME = "state.db"
EXPECTED = "memory, sqlite, sqlite:PATH or redis://HOST"


class BadLocation(ValueError):
    """The location cannot be used. The message names the expected forms or the next step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateLocation:
    """A file, Redis, or memory if neither is set. `key` encrypts secrets. Without it, a file uses its key file."""

    path: Path | None = None
    redis: RedisAddress | None = None
    survives_power_loss: bool = False
    key: str | None = field(default=None, repr=False)

    @property
    def is_memory(self) -> bool:
        return self.path is None and self.redis is None


def parse_location(text: str, environment: Mapping[str, str], *, sync: str = SYNCS[0]) -> StateLocation:
    """Parse `memory`, `sqlite`, `sqlite:PATH`, or a Redis URL. Raises: BadLocation."""
    if is_redis_url(text):
        try:
            return StateLocation(redis=parse_address(text), key=environment.get(KEY_VARIABLE) or None)
        except BadAddress as error:
            raise BadLocation(str(error)) from None
    engine, _, path = text.partition(":")
    if engine == MEMORY and not path:
        return StateLocation()
    if engine != SQLITE:
        shown = text.rpartition("@")[2]  # a mistyped URL may contain a password before the @
        raise BadLocation(f"expected {EXPECTED}, found {shown!r}")
    try:
        place = Path(path).expanduser().absolute() if path else usual_path(environment, sys.platform)
    except RuntimeError:
        raise BadLocation("this user has no home directory; specify a file with sqlite:PATH, or use memory") from None
    return StateLocation(path=place, survives_power_loss=sync == "full", key=environment.get(KEY_VARIABLE) or None)


def usual_path(environment: Mapping[str, str], platform: str) -> Path:
    """Return the default path, in the user's state directory. Raises: RuntimeError if there is no home."""
    return state_folder(environment, platform) / FILE_NAME
