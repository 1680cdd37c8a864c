"""A process that refreshes a token again and again, beside others that do the same. It prints its tokens as JSON.

Arguments: where state is, the address of the server, and the number of the token to stop at.
"""

import asyncio
import json
import sys
from collections import Counter
from pathlib import Path

from emceepee.backends.http1.pool import ConnectionPool
from emceepee.backends.oauth.oauth_sender import OAuthSender
from emceepee.backends.oauth.renewal import Renewal, refresh
from emceepee.backends.oauth.tokens import TokenSet
from emceepee.clock import SystemClock
from emceepee.sessions.logins.token_repository import TokenRepository
from emceepee.sessions.secret_records import SecretRecords, ServerKey
from emceepee.store.redis.connection.redis_address import parse_address
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import Store
from support.store.store_engines import STATE_KEY

PRINCIPAL, SERVER = "local", "tracker"


def number_of(tokens: TokenSet) -> int:
    return int(tokens.access_token.rpartition("-")[2])


async def open_store(place: str) -> Store:
    if place.startswith("redis"):
        return await RedisStore.open(parse_address(place), SystemClock(), key=STATE_KEY)
    return await SqliteStore.open(Path(place), SystemClock())


async def refresh_until(goal: int, repository: TokenRepository, key: ServerKey, sender: OAuthSender) -> Counter[str]:
    seen: Counter[str] = Counter()

    async def renew(tokens: TokenSet) -> Renewal:
        seen["asked"] += 1
        return await refresh(tokens, sender)

    current = await repository.load(key)
    while current is not None and number_of(current) < goal:
        outcome = await repository.refresh(key, current, renew)
        seen[type(outcome).__name__] += 1
        if not isinstance(outcome, TokenSet):
            break
        assert number_of(outcome) > number_of(current)
        current = outcome
    return seen


async def main(place: str, url: str, goal: int) -> None:
    store, clock = await open_store(place), SystemClock()
    try:
        async with ConnectionPool.running(clock, None) as pool:
            repository = TokenRepository(SecretRecords(store, clock), clock)
            key = ServerKey(PRINCIPAL, SERVER, url)
            seen = await refresh_until(goal, repository, key, OAuthSender(pool=pool, clock=clock))
            await repository.close()
    finally:
        await store.close()
    sys.stdout.write(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], int(sys.argv[3])))
