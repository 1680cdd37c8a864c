"""The first connection to Redis, with retries and checks of the server."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial

import hiredis

from emceepee.clock import Clock
from emceepee.store.redis.connection import redis_faults as faults
from emceepee.store.redis.connection.commands import Commands, UnknownOutcome
from emceepee.store.redis.connection.connect import OnMessage, connect
from emceepee.store.redis.connection.redis_address import CLUSTER, RedisAddress
from emceepee.store.redis.connection.redis_connection import RedisConnection
from emceepee.store.redis.connection.redis_link import CONNECTING, RedisLink
from emceepee.store.redis.keys import KeyNames
from emceepee.store.store import StoreUnavailable, StoreUnusable
from emceepee.telemetry.logs import EventLog

log = EventLog("store")
OPEN_SECONDS = 4.0  # Redis may still be starting
PAUSE = 0.1
FORMAT = b"1"
_HOPELESS = ("WRONGPASS", "NOAUTH", "NOPERM", "ERR")  # errors that a retry cannot fix


@dataclass(frozen=True, slots=True)
class RedisAccess:
    """The interface for commands, a factory for other connections, and the INFO of the server."""

    address: RedisAddress
    commands: Commands
    connect: Callable[[OnMessage], Awaitable[RedisConnection]]
    info: Mapping[str, str]

    def warn(self) -> None:
        """Log a warning for each setting that can lose state."""
        policy = self.info.get("maxmemory_policy", "noeviction")
        if policy != "noeviction":
            log.warning("redis_may_evict_state", redis=str(self.address), policy=policy, instead="noeviction")
        if self.info.get("aof_enabled") == "0":
            log.warning("redis_may_lose_state", redis=str(self.address), missing="appendonly yes")

    def unusable(self, error: Exception) -> StoreUnusable:
        if isinstance(error, UnknownOutcome):
            error = error.because
        if isinstance(error, StoreUnavailable):
            return faults.unusable_as(error)
        return faults.unusable(self.address, error)


async def reach(address: RedisAddress, clock: Clock, patience: float) -> RedisAccess:
    """Raises: StoreUnusable."""
    deadline = asyncio.get_running_loop().time() + patience
    while True:
        try:
            access = await (_reach_cluster(address) if address.kind == CLUSTER else _reach_one(address, clock))
            break
        except CONNECTING as error:
            is_hopeless = isinstance(error, hiredis.ReplyError) and faults.first_word(error) in _HOPELESS
            if is_hopeless or asyncio.get_running_loop().time() >= deadline:
                raise faults.unusable(address, error) from error
        await clock.sleep(PAUSE)
    return access


async def _reach_one(address: RedisAddress, clock: Clock) -> RedisAccess:
    connection = await connect(address)
    try:
        info = await _look_at(address, connection)
    except BaseException:
        connection.close()
        raise
    again = partial(connect, address)
    return RedisAccess(address, RedisLink(address, connection, again, clock), again, info)


async def _reach_cluster(address: RedisAddress) -> RedisAccess:
    from emceepee.store.redis.connection.cluster import ClusterCommands  # imported here because it loads many modules

    cluster = ClusterCommands(address)
    await cluster.open()
    try:
        connection = await cluster.connect()
        try:
            info = await _look_at(address, connection)
        finally:
            connection.close()
    except BaseException:
        await cluster.close()
        raise
    return RedisAccess(address, cluster, cluster.connect, info)


async def check_format(commands: Commands, names: KeyNames, address: RedisAddress) -> None:
    """Raises: StoreUnusable, StoreUnavailable, UnknownOutcome."""
    await commands.execute("SET", names.format, FORMAT, "NX")
    if bytes(await commands.execute("GET", names.format) or FORMAT) != FORMAT:
        raise faults.unusable_because(
            address, f"has state of a newer emceepee under {names.format}", "Use that version, or another ?prefix="
        )


async def _look_at(address: RedisAddress, connection: RedisConnection) -> Mapping[str, str]:
    """Raises: StoreUnusable."""
    try:
        info = read_info(await connection.ask("INFO"))
    except hiredis.ReplyError:  # INFO is forbidden, so skip the checks
        return {}
    if "redis_version" in info:
        faults.check_version(address, info["redis_version"])
    if info.get("redis_mode") == "cluster" and address.kind != CLUSTER:
        raise faults.unusable_because(address, "is part of a cluster", "Use redis+cluster:// in the URL")
    return info


def read_info(text: bytes) -> dict[str, str]:
    lines = text.decode("utf-8", "replace").splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line and not line.startswith("#"))
