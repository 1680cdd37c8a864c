"""Write access to the state without the key is not enough to plant a server, a login, or a script."""

import asyncio
import hashlib
import logging
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest

from emceepee.clock import SystemClock
from emceepee.store.redis.connection.redis_address import parse_address
from emceepee.store.redis.keys import KeyNames
from emceepee.store.redis.plain_servers import PlainServer, seal_servers
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.sqlite.sqlite_store import SqliteStore
from emceepee.store.store import ServerConfiguration, StoredLogin, StoreUnavailable, StoreUnusable
from support.fakes.clock import FakeClock
from support.store.store_engines import STATE_KEY
from support.store.stored_sessions import HOUR, NOW
from support.system.redis_server import RedisServer

PLANTED = '{"version":1,"entry":{"name":"evil","command":"/bin/sh"},"onlyPublicAddresses":false}'
UNTIL = 2_000_000_000_000_000


def server(name: str, settings: bytes = b"{}") -> ServerConfiguration:
    return ServerConfiguration(principal="alice", name=name, settings=settings, holds_secrets=False)


async def opened(url: str, key: str | None = STATE_KEY) -> RedisStore:
    return await RedisStore.open(parse_address(url), FakeClock(), key=key, lease_seconds=60, patience=0)


async def test_redis_entries_without_encryption_are_refused_when_a_key_is_set(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = redis.url()
    store, names = await opened(url), KeyNames(parse_address(url).prefix)
    await store.add_server(server("ant"))
    for name, entry in (("evil", f"2 p00 {PLANTED}"), ("worse", "x"), ("worst", "y p00 {}")):
        redis.command("HSET", names.servers("alice"), name, entry)
    with caplog.at_level(logging.WARNING):
        assert await store.servers_of("alice") == [server("ant")]
    assert "plain_servers_refused" in caplog.text
    await store.add_server(server("evil", b"mine"))  # a refused entry does not occupy its name
    assert [each.settings for each in await store.servers_of("alice")] == [b"{}", b"mine"]
    await store.close()


async def test_an_encrypted_entry_is_accepted_only_under_its_own_name_and_principal(redis: RedisServer) -> None:
    url = redis.url()
    store, names = await opened(url), KeyNames(parse_address(url).prefix)
    await store.add_server(server("ant"))
    entry = redis.command("HGET", names.servers("alice"), "ant").split(b"\r\n", 1)[1][:-2]
    redis.command("HSET", names.servers("bob"), "ant", entry)
    with pytest.raises(StoreUnavailable, match="cannot be read"):
        await store.servers_of("bob")
    await store.close()


def test_servers_from_before_the_key_are_shown_and_encrypted_on_request(redis: RedisServer) -> None:
    url = redis.url()
    address = parse_address(url)
    shown: list[PlainServer] = []

    async def store_without_key() -> None:
        store = await opened(url, key=None)
        for name in ("ant", "bee"):
            await store.add_server(server(name, name.encode()))
        await store.close()

    async def read_with_key() -> list[str]:
        store = await opened(url)
        found = [each.name for each in await store.servers_of("alice") if each.settings == each.name.encode()]
        await store.close()
        return found

    def look(found: Sequence[PlainServer]) -> bool:
        shown.extend(found)
        return False

    asyncio.run(store_without_key())
    with pytest.raises(StoreUnusable, match="EMCEEPEE_STATE_KEY"):
        seal_servers(address, SystemClock(), None, lambda found: True)
    assert seal_servers(address, SystemClock(), STATE_KEY, look) == 0
    assert [(each.principal, each.name, each.settings) for each in shown] == [
        ("alice", "ant", b"ant"),
        ("alice", "bee", b"bee"),
    ]
    assert asyncio.run(read_with_key()) == []

    def agree_while_one_changes(found: object) -> bool:
        redis.command("HSET", store_name, "bee", f"2 p00 {PLANTED}")
        return True

    store_name = f"{{{address.prefix}:shared}}:servers:" + hashlib.sha256(b"alice").hexdigest()
    assert seal_servers(address, SystemClock(), STATE_KEY, agree_while_one_changes) == 1
    assert asyncio.run(read_with_key()) == ["ant"]


async def test_a_console_login_planted_in_redis_is_rejected(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    url = redis.url()
    store, names = await opened(url), KeyNames(parse_address(url).prefix)
    mine = StoredLogin(b"1" * 32, "alice", NOW + HOUR)
    await store.add_login(mine)
    proven = redis.command("HGET", names.logins, "1" * 32).split(b"\r\n", 1)[1][:-2]
    for digest, entry in (("2" * 32, f"{UNTIL} operator"), ("3" * 32, proven), ("4" * 32, "x"), ("5" * 32, "9" * 40)):
        redis.command("HSET", names.logins, digest, entry)
    with caplog.at_level(logging.WARNING):
        assert await store.logins() == [mine]
    assert "logins_refused" in caplog.text
    await store.forget_expired(NOW, 10)
    assert redis.command("HLEN", names.logins) == b":1\r\n"
    await store.close()


async def test_a_console_login_planted_in_a_state_file_is_rejected(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = await SqliteStore.open(path, SystemClock(), key=STATE_KEY)
    mine = StoredLogin(b"1" * 32, "alice", NOW + HOUR)
    await store.add_login(mine)
    with sqlite3.connect(path) as connection:
        connection.execute("INSERT INTO logins SELECT ?, 'operator', until, proof FROM logins", (b"2" * 32,))
        connection.execute("INSERT INTO logins VALUES (?, 'operator', ?, x'')", (b"3" * 32, UNTIL))
    connection.close()
    assert await store.logins() == [mine]
    await store.close()


async def test_the_secret_of_replicas_is_not_in_the_state_file(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    store = await SqliteStore.open(path, SystemClock(), key=STATE_KEY)
    secret = await store.replica_secret()
    assert await store.replica_secret() == secret
    await store.close()
    assert secret not in path.read_bytes()
