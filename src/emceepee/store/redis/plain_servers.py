"""Servers that Redis stores without encryption, from before there was a key or by a process without the key.

Replicas with a key reject them, because write access to Redis would otherwise suffice to start any command. The
operator decides: `emceepee state seal` shows each and encrypts it.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from emceepee.clock import Clock
from emceepee.store.redis.connection.commands import Commands, ScriptCall, UnknownOutcome
from emceepee.store.redis.connection.redis_access import reach
from emceepee.store.redis.connection.redis_address import RedisAddress
from emceepee.store.redis.connection.redis_faults import unusable_because
from emceepee.store.redis.keys import CLUSTER_PARTITIONS, KeyNames
from emceepee.store.redis.scripts.replica_scripts import SEAL_SERVER
from emceepee.store.redis.shared import SEALED, is_sealed
from emceepee.store.redis.state_key import SharedKey
from emceepee.store.secret_box import VARIABLE
from emceepee.store.store import ServerConfiguration, StoreError

_TELLER = "state seal"  # no replica has that name, so all of them are notified


@dataclass(frozen=True, slots=True)
class PlainServer:
    """A server without encryption. `entry` is its whole value in Redis."""

    principal: str
    name: str
    entry: bytes

    @property
    def settings(self) -> bytes:
        return self.entry.split(b" ", 2)[2]


async def plain_servers(commands: Commands, names: KeyNames) -> Sequence[PlainServer]:
    found: list[PlainServer] = []
    for principal in sorted(each.decode() for each in await commands.execute("SMEMBERS", names.principals)):
        flat = await commands.execute("HGETALL", names.servers(principal))
        fields = zip(flat[::2], flat[1::2], strict=True) if isinstance(flat, list) else flat.items()
        found += [PlainServer(principal, name.decode(), data) for name, data in fields if not is_sealed(data)]
    return found


def seal_servers(
    address: RedisAddress, clock: Clock, given: str | None, agree: Callable[[Sequence[PlainServer]], bool]
) -> int:
    """If `agree` accepts the servers, encrypt each that is unchanged. Return how many. Raises: StoreUnusable."""
    return asyncio.run(_seal(address, clock, given, agree))


async def _seal(
    address: RedisAddress, clock: Clock, given: str | None, agree: Callable[[Sequence[PlainServer]], bool]
) -> int:
    key = SharedKey(address, given)
    if key.box is None:
        raise unusable_because(address, "has no key for encryption", f"Set it in the variable {VARIABLE}")
    access = await reach(address, clock, patience=0)
    commands = access.commands
    names = KeyNames(address.prefix, CLUSTER_PARTITIONS if commands.is_spread else 1)
    try:
        await key.verify(commands, names)
        found = await plain_servers(commands, names)
        if not found or not agree(found):
            return 0
        calls = [_sealing(names, key, each) for each in found]
        return sum([int(changed) for changed in await commands.run_all(calls)])
    except (StoreError, UnknownOutcome) as error:
        raise access.unusable(error) from error
    finally:
        await commands.close()


def _sealing(names: KeyNames, key: SharedKey, server: PlainServer) -> ScriptCall:
    position, flags, settings = server.entry.split(b" ", 2)
    sealed = key.sealed(ServerConfiguration(principal=server.principal, name=server.name, settings=settings))
    assert sealed is not None
    entry = b" ".join((position, SEALED + flags[1:], sealed))
    keys = [names.servers(server.principal), names.revision]
    return ScriptCall(SEAL_SERVER, keys, [names.channel, _TELLER, server.name, server.entry, entry])
