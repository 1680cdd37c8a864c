"""Opens connections to Redis, with TLS, sentinels, and authentication if the address requires them."""

import asyncio
import os
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress

import hiredis

from emceepee.store.redis.connection.redis_address import SENTINEL, RedisAddress
from emceepee.store.redis.connection.redis_connection import ConnectionLost, RedisConnection, Word
from emceepee.store.redis.scripts.replica_scripts import OF_REPLICAS
from emceepee.store.redis.scripts.secret_scripts import OF_SECRETS
from emceepee.store.redis.scripts.session_scripts import OF_SESSIONS

CONNECT_SECONDS = 2.0  # for all steps together
CLIENT_NAME = "emceepee"
OnMessage = Callable[[Sequence[bytes]], None]


async def connect(address: RedisAddress, on_message: OnMessage | None = None) -> RedisConnection:
    """Raises: OSError, asyncio.TimeoutError, ConnectionLost, hiredis.ReplyError."""
    async with asyncio.timeout(CONNECT_SECONDS):
        host, port = await find_node(address)
        return await connect_to(host, port, address, on_message)


async def connect_to(
    host: str, port: int, address: RedisAddress, on_message: OnMessage | None = None
) -> RedisConnection:
    loop = asyncio.get_running_loop()
    tls = tls_context(address)
    _, connection = await loop.create_connection(
        lambda: RedisConnection(on_message), host, port, ssl=tls, server_hostname=host if tls is not None else None
    )
    try:
        commands: list[tuple[Word, ...]] = []
        if address.password is not None:
            login = (address.username,) if address.username is not None else ()
            commands.append(("AUTH", *login, address.password))
        if address.database:
            commands.append(("SELECT", address.database))
        commands.append(("PING",))
        for command in commands:
            await connection.ask(*command)
        with suppress(hiredis.ReplyError):  # some hosted services reject it
            await connection.ask("CLIENT", "SETNAME", CLIENT_NAME)
        for future in connection.send(
            [("SCRIPT", "LOAD", script.text) for script in (*OF_SESSIONS, *OF_REPLICAS, *OF_SECRETS)]
        ):
            await future
    except BaseException:
        connection.close()
        raise
    return connection


async def find_node(address: RedisAddress) -> tuple[str, int]:
    """Return the host and port of the one Redis, or of the primary that the sentinels report."""
    if address.kind != SENTINEL:
        return address.nodes[0]
    from redis.asyncio.sentinel import Sentinel
    from redis.exceptions import RedisError

    tls = {"ssl": True, "ssl_ca_certs": address.files.get("ca")} if address.has_tls else {}
    options = {"socket_timeout": CONNECT_SECONDS / 2, **tls}
    sentinels = Sentinel(address.nodes, sentinel_kwargs=options)  # type: ignore[no-untyped-call]  # it has no types
    try:
        host, port = await sentinels.discover_master(address.service)
    except RedisError as error:
        raise ConnectionLost(f"no sentinel knows a primary called {address.service}") from error
    finally:
        for each in sentinels.sentinels:
            await each.aclose()
    return str(host), int(port)


def tls_context(address: RedisAddress) -> ssl.SSLContext | None:
    """Raises: OSError if a file cannot be read."""
    if not address.has_tls:
        return None
    for file in address.files.values():
        os.stat(file)  # its error names the file
    context = ssl.create_default_context(cafile=address.files.get("ca"))
    if "cert" in address.files:
        context.load_cert_chain(address.files["cert"], address.files.get("key"))
    return context
