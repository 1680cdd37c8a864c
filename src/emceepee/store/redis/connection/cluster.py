"""Redis Cluster, through the package `redis`, which finds the node of each key and follows redirections."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import hiredis
from redis.asyncio.cluster import ClusterNode, RedisCluster
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import NoScriptError, RedisClusterException, RedisError, ResponseError
from redis.exceptions import TimeoutError as NoAnswer

from emceepee.store.redis.connection import redis_faults as faults
from emceepee.store.redis.connection.commands import ScriptCall, UnknownOutcome
from emceepee.store.redis.connection.connect import OnMessage, connect_to
from emceepee.store.redis.connection.redis_address import RedisAddress
from emceepee.store.redis.connection.redis_connection import COMMAND_SECONDS, ConnectionLost, RedisConnection, Word
from emceepee.store.store import StoreUnavailable

LONGEST_SECONDS = 2 * COMMAND_SECONDS  # for one command, including retries by the package


class ClusterCommands:
    """Runs one command at a time per hash tag, because the connections of a pool do not preserve the order."""

    is_spread = True

    def __init__(self, address: RedisAddress) -> None:
        self._address = address
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._is_closed = False
        self._cluster = RedisCluster(
            startup_nodes=[ClusterNode(host, port) for host, port in address.nodes],
            username=address.username,
            password=address.password,
            socket_timeout=COMMAND_SECONDS,
            socket_connect_timeout=COMMAND_SECONDS,
            ssl=address.has_tls,
            ssl_ca_certs=address.files.get("ca"),
            ssl_certfile=address.files.get("cert"),
            ssl_keyfile=address.files.get("key"),
        )

    async def open(self) -> None:
        """Raises: ConnectionLost, TimeoutError, hiredis.ReplyError."""
        try:
            await self._cluster.initialize()
        except RedisError as error:
            await self._cluster.aclose()
            raise _plain(error) from error

    async def connect(self, on_message: OnMessage | None = None) -> RedisConnection:
        """Open a separate connection to a random node. Raises: what connecting can raise."""
        node = self._cluster.get_random_node()
        return await connect_to(str(node.host), int(node.port), self._address, on_message)

    async def run_all(self, calls: Sequence[ScriptCall]) -> list[Any]:
        by_tag: dict[str, list[int]] = {}
        for number, call in enumerate(calls):
            by_tag.setdefault(_tag(call.keys[0]), []).append(number)
        replies: list[Any] = [None] * len(calls)

        async def run(tag: str, numbers: Sequence[int]) -> None:
            async with self._locks[tag]:
                for number in numbers:
                    replies[number] = await self._run(calls[number])

        outcomes = await asyncio.gather(*(run(*each) for each in by_tag.items()), return_exceptions=True)
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise UnknownOutcome(outcome) if isinstance(outcome, StoreUnavailable) and len(calls) > 1 else outcome
        return replies

    async def execute(self, *words: Word) -> Any:
        async with self._locks[_tag(str(words[1]))]:
            return await self._ask(*words)

    async def close(self) -> None:
        self._is_closed = True
        await self._cluster.aclose()

    async def _run(self, call: ScriptCall) -> Any:
        words = (len(call.keys), *call.keys, *call.arguments)
        try:
            return await self._ask("EVALSHA", call.script.sha, *words)
        except NoScriptError:
            return await self._ask("EVAL", call.script.text, *words)

    async def _ask(self, *words: Word) -> Any:
        if self._is_closed:
            raise StoreUnavailable(faults.CLOSED)
        try:
            async with asyncio.timeout(LONGEST_SECONDS):
                return await self._cluster.execute_command(*words)
        except NoScriptError:
            raise
        except TimeoutError as error:
            raise UnknownOutcome(faults.unavailable(self._address, error)) from None
        except RedisError as error:
            plain = _plain(error)
            told = faults.unavailable(self._address, plain)
            if isinstance(plain, hiredis.ReplyError):
                raise told from None
            raise UnknownOutcome(told) from None


def _plain(error: RedisError) -> Exception:
    """Convert an error of the package to the error that `RedisConnection` would raise."""
    if isinstance(error, NoAnswer):
        return TimeoutError()
    if isinstance(error, NotConnected | RedisClusterException) and not isinstance(error, ResponseError):
        return ConnectionLost("no node of the cluster answers")
    return hiredis.ReplyError(str(error))


def _tag(key: str) -> str:
    return key.partition("}")[0]
