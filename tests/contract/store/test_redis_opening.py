"""Obstacles to using Redis are reported at the start, in a sentence without passwords."""

import asyncio
import base64
import logging
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from emceepee.store.redis.connection.redis_address import parse_address
from emceepee.store.redis.keys import KeyNames
from emceepee.store.redis.redis_store import RedisStore
from emceepee.store.store import NoKey, ServerConfiguration, StoreUnusable
from support.fakes.clock import FakeClock
from support.store.store_engines import STATE_KEY
from support.store.stored_sessions import head, key, store_session, taken
from support.system.certificates import self_signed
from support.system.ports import free_port
from support.system.redis_server import RedisServer, redis_server, sentinel_of
from support.waiting import WITHIN

PASSWORD = "s3cret-of-redis"
SETTINGS = b'{"headers":{"x":"a-secret-of-the-server"}}'


@pytest.fixture(scope="module")
def locked() -> Iterator[RedisServer]:
    with redis_server(password=PASSWORD) as running:
        yield running


async def opened(url: str, key: str | None = None) -> RedisStore:
    return await RedisStore.open(parse_address(url), FakeClock(), key=key, lease_seconds=60, patience=0)


async def refusal(url: str, key: str | None = None) -> str:
    with pytest.raises(StoreUnusable) as caught:
        await opened(url, key)
    told = str(caught.value)
    assert PASSWORD not in told
    assert told.startswith("Redis at redis")
    assert told.endswith("or store state in a file with --state sqlite.")
    return told


async def test_a_redis_password_is_requested_and_never_shown(locked: RedisServer) -> None:
    store = await opened(locked.url())
    await store.close()
    place = f"127.0.0.1:{locked.port}"
    assert "requires a password" in await refusal(f"redis://{place}")
    assert "rejects the user or the password" in await refusal(f"redis://:{PASSWORD}x@{place}")
    assert "rejects the user or the password" in await refusal(f"redis://eve:{PASSWORD}@{place}")


async def test_a_password_for_a_redis_without_one_is_reported(redis: RedisServer) -> None:
    assert "has no password, but the URL contains one" in await refusal(redis.url().replace("//", f"//:{PASSWORD}@"))


async def test_a_missing_redis_database_is_reported(redis: RedisServer) -> None:
    assert "has no database with that number" in await refusal(redis.url().replace("/0?", "/99?"))


async def test_an_address_without_a_redis_server_is_reported() -> None:
    told = await refusal(f"redis://:{PASSWORD}@127.0.0.1:{free_port()}")
    assert "cannot be reached" in told
    assert "cannot be reached" in await refusal(f"redis://{'a' * 64}.example")
    assert "Start it, or correct the URL" in told


@asynccontextmanager
async def server_that(answer: Callable[[bytes], bytes]) -> AsyncIterator[str]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while said := await reader.read(1 << 16):
                writer.write(answer(said))
        writer.close()
        left.set()

    left = asyncio.Event()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"redis://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        await asyncio.wait_for(left.wait(), WITHIN)
    finally:
        server.close()


async def test_another_program_is_distinguished_from_redis() -> None:
    async with server_that(lambda _: b"HTTP/1.1 400 Bad Request\r\n\r\n") as url:
        assert "it does not answer as Redis does" in await refusal(url)
        assert "TLS" in await refusal(url.replace("redis:", "rediss:"))


async def test_an_old_redis_is_refused_with_its_version() -> None:
    def answer(said: bytes) -> bytes:
        if b"INFO" in said:
            return b"$21\r\nredis_version:5.0.14\n\r\n"
        return b"+OK\r\n" * said.count(b"*")

    async with server_that(answer) as url:
        told = await refusal(url)
    assert "is version 5.0.14. Use 6.2 or newer, or Valkey" in told


async def test_redis_keys_of_other_data_are_reported(redis: RedisServer) -> None:
    url = redis.url()
    prefix = parse_address(url).prefix
    redis.command("LPUSH", f"{{{prefix}:replicas}}:registry", "x")
    told = await refusal(url)
    assert "has other data under these keys. Choose another ?prefix= in the URL" in told


async def test_redis_state_of_a_newer_emceepee_is_left_unchanged(redis: RedisServer) -> None:
    url = redis.url()
    redis.command("SET", f"{{{parse_address(url).prefix}:shared}}:format", "99")
    assert "has state of a newer emceepee" in await refusal(url)


async def test_redis_key_prefixes_separate_states(redis: RedisServer) -> None:
    first, second = await opened(redis.url()), await opened(redis.url())
    await store_session(first, head("s1"))
    assert await second.take(key("s1")) is None
    await taken(first, key("s1"))
    for each in (first, second):
        await each.close()


# The key for secrets.


def server(*, holds_secrets: bool = True) -> ServerConfiguration:
    return ServerConfiguration(principal="alice", name="ant", settings=SETTINGS, holds_secrets=holds_secrets)


async def test_every_replica_needs_the_same_state_key(redis: RedisServer) -> None:
    url, another = redis.url(), base64.urlsafe_b64encode(b"x" * 32).decode()
    store = await opened(url, STATE_KEY)
    await store.add_server(server())
    assert await store.servers_of("alice") == [server()]
    await store.close()
    for key_given, words in ((another, "under another key than that in the variable"), (None, "without their key")):
        told = await refusal(url, key_given)
        assert words in told
        assert "EMCEEPEE_STATE_KEY" in told
        assert "every replica needs the same" in told
    assert "32 bytes in URL-safe base64" in await refusal(url, "short")
    store = await opened(url, STATE_KEY)
    assert await store.servers_of("alice") == [server()]
    await store.close()


async def test_without_a_state_key_a_secret_is_refused_and_other_data_is_stored(redis: RedisServer) -> None:
    store = await opened(redis.url())
    with pytest.raises(NoKey, match=r"EMCEEPEE_STATE_KEY to the same key on every replica"):
        await store.add_server(server())
    assert await store.servers_of("alice") == []
    await store.add_server(server(holds_secrets=False))
    with pytest.raises(NoKey):
        await store.replace_server(server())
    assert await store.servers_of("alice") == [server(holds_secrets=False)]
    await store.close()


async def test_redis_contains_no_secret_in_plain_text(redis: RedisServer) -> None:
    url = redis.url()
    store = await opened(url, STATE_KEY)
    await store.add_server(server())
    stored = redis.command("HGETALL", KeyNames(parse_address(url).prefix).servers("alice"))
    assert b"ant" in stored
    assert b"a-secret-of-the-server" not in stored
    await store.close()


async def test_state_without_a_key_is_encrypted_once_all_replicas_without_a_key_have_left(redis: RedisServer) -> None:
    url = redis.url()
    without = await opened(url)
    assert await without.sealer() is None
    secret = await without.replica_secret()
    assert await without.replica_secret() == secret
    assert "is used by replicas without EMCEEPEE_STATE_KEY" in await refusal(url, STATE_KEY)
    await without.close()
    store = await opened(url, STATE_KEY)
    assert await store.replica_secret() != secret
    await store.close()
    assert "without their key" in await refusal(url)


# Unusual, but no obstacle.


async def test_a_redis_with_an_eviction_policy_causes_a_warning(
    redis: RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    redis.command("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    try:
        with caplog.at_level(logging.WARNING):
            await (await opened(redis.url())).close()
    finally:
        redis.command("CONFIG", "SET", "maxmemory-policy", "noeviction")
    assert "redis_may_evict_state" in caplog.text
    assert "redis_may_lose_state" in caplog.text, "it writes nothing to its disk"


async def test_the_redis_connection_is_encrypted_if_the_certificate_is_trusted(tmp_path: Path) -> None:
    file, port = self_signed(tmp_path), free_port()
    files = ("--tls-cert-file", str(file), "--tls-key-file", str(file), "--tls-ca-cert-file", str(file))
    with redis_server("--tls-port", str(port), *files, "--tls-auth-clients", "no", password=PASSWORD):
        url = f"rediss://:{PASSWORD}@localhost:{port}?ca={file}"
        store = await opened(url)
        await store_session(store, head("s1"))
        await store.close()
        assert "is not trusted" in await refusal(url.partition("?")[0])
        assert "/none.pem, which does not exist" in await refusal(f"{url.partition('?')[0]}?ca=/none.pem")
        plain = await refusal(url.replace("rediss:", "redis:").partition("?")[0])
        assert "cannot be used" in plain


async def test_a_redis_cluster_is_recognized(redis_cluster: RedisServer) -> None:
    assert "is part of a cluster. Use redis+cluster:// in the URL" in await refusal(redis_cluster.url())


async def test_sentinels_are_asked_for_the_writable_primary(redis: RedisServer) -> None:
    with sentinel_of(redis, "mine") as sentinel:
        url = f"redis+sentinel://127.0.0.1:{sentinel.port}/mine/0?prefix={parse_address(redis.url()).prefix}"
        store = await opened(url)
        await store_session(store, head("s1"))
        await taken(store, key("s1"))
        await store.close()
        assert "no sentinel knows a primary called other" in await refusal(url.replace("/mine/", "/other/"))
