"""A read-only overview of the state in Redis for its operator, while replicas use it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from emceepee.clock import Clock
from emceepee.state.replica import Replica
from emceepee.store.redis.connection.commands import ScriptCall, UnknownOutcome
from emceepee.store.redis.connection.redis_access import RedisAccess, reach
from emceepee.store.redis.connection.redis_address import RedisAddress
from emceepee.store.redis.keys import CLUSTER_PARTITIONS, KeyNames
from emceepee.store.redis.plain_servers import plain_servers
from emceepee.store.redis.scripts.replica_scripts import ROSTER
from emceepee.store.redis.slot_lease import read_roster
from emceepee.store.store import StoreError


@dataclass(frozen=True, slots=True, kw_only=True)
class RedisOverview:
    """Figures about the state in Redis. `place` is the URL without its password."""

    place: str
    replicas: Sequence[Replica]
    sessions: int
    servers: int
    plain_servers: int  # without encryption
    logins: int


def look_at_redis(address: RedisAddress, clock: Clock) -> RedisOverview:
    """Raises: StoreUnusable."""
    return asyncio.run(_look(address, clock))


async def _look(address: RedisAddress, clock: Clock) -> RedisOverview:
    access = await reach(address, clock, patience=0)
    try:
        return await _read(access)
    except (StoreError, UnknownOutcome) as error:
        raise access.unusable(error) from error
    finally:
        await access.commands.close()


async def _read(access: RedisAccess) -> RedisOverview:
    commands, prefix = access.commands, access.address.prefix
    names = KeyNames(prefix, CLUSTER_PARTITIONS if commands.is_spread else 1)
    roster = await read_roster(commands, ScriptCall(ROSTER, [names.registry], [names.replicas]))
    principals = [each.decode() for each in await commands.execute("SMEMBERS", names.principals)]
    return RedisOverview(
        place=str(access.address),
        replicas=[roster.alive[slot] for slot in sorted(roster.alive)],
        sessions=sum([await commands.execute("ZCARD", f"{tag}:expiry") for tag in names.tags]),
        servers=sum([await commands.execute("HLEN", names.servers(each)) for each in principals]),
        plain_servers=len(await plain_servers(commands, names)),
        logins=await commands.execute("HLEN", names.logins),
    )
