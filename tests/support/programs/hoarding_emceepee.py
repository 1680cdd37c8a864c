"""An emceepee with a planted bug: when it stops, it lets go of nothing, neither of its sessions nor of its slot."""

import sys
from collections.abc import Mapping

from emceepee.cli.main import main
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.store import Lease


async def release_nothing(store: RedisStore, leases: Mapping[str, Lease]) -> None:
    pass


async def stay(store: RedisStore) -> None:
    pass


if __name__ == "__main__":
    RedisStore.release = release_nothing  # type: ignore[assignment, method-assign]  # that is the bug
    RedisStore._leave = stay  # type: ignore[assignment, method-assign]  # and the rest of it
    sys.exit(main())
