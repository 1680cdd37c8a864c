import pytest

from emceepee.store.redis.connection.redis_address import (
    CLUSTER,
    PLAIN,
    SENTINEL,
    BadAddress,
    RedisAddress,
    parse_address,
)

SECRET = "s3cret"


@pytest.mark.parametrize(
    ("url", "meant"),
    [
        ("redis://host", RedisAddress(kind=PLAIN, nodes=(("host", 6379),))),
        ("redis://", RedisAddress(kind=PLAIN, nodes=(("localhost", 6379),))),
        ("redis://host:1/2", RedisAddress(kind=PLAIN, nodes=(("host", 1),), database=2)),
        ("redis://[::1]:1", RedisAddress(kind=PLAIN, nodes=(("::1", 1),))),
        ("redis://:p%40ss@host", RedisAddress(kind=PLAIN, nodes=(("host", 6379),), password="p@ss")),
        (
            "rediss://anna:pass@host?prefix=team.a&ca=/ca.pem&cert=/c.pem&key=/k.pem",
            RedisAddress(
                kind=PLAIN,
                nodes=(("host", 6379),),
                username="anna",
                password="pass",
                has_tls=True,
                prefix="team.a",
                files={"ca": "/ca.pem", "cert": "/c.pem", "key": "/k.pem"},
            ),
        ),
        (
            "redis+sentinel://a:1,b/mine/3",
            RedisAddress(kind=SENTINEL, nodes=(("a", 1), ("b", 26379)), service="mine", database=3),
        ),
        ("redis+cluster://a,b:2", RedisAddress(kind=CLUSTER, nodes=(("a", 6379), ("b", 2)))),
        ("rediss+cluster://a", RedisAddress(kind=CLUSTER, nodes=(("a", 6379),), has_tls=True)),
    ],
)
def test_a_redis_url_is_parsed_into_an_address(url: str, meant: RedisAddress) -> None:
    assert parse_address(url) == meant


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("redis://a,b", "several hosts are for redis\\+sentinel:// and redis\\+cluster://"),
        ("redis://host:port", "expected redis://HOST"),
        ("redis://host/first", "expected a number of a database"),
        ("redis://host/1/2", "expected a number of a database"),
        ("redis://host?prefix={a}", "a prefix has up to 64 letters"),
        ("redis://host?prefix=", "a prefix has up to 64 letters"),
        ("redis://host?timeout=3", "unknown options in the URL: timeout; expected ca, cert, key, prefix"),
        ("redis+sentinel://host", "name the service that the sentinels watch"),
        ("redis+cluster://host/1", "a cluster has one database"),
        ("redis://[::1", "expected redis://HOST"),
    ],
)
def test_an_invalid_redis_url_is_rejected_without_showing_its_password(url: str, why: str) -> None:
    with pytest.raises(BadAddress, match=why) as caught:
        parse_address(url.replace("//", f"//anna:{SECRET}@", 1))
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://:s3cret@host", "redis://host:6379"),
        ("rediss://anna:s3cret@host:1/2?prefix=mine", "rediss://host:1/2?prefix=mine"),
        ("redis+sentinel://:s3cret@a:1,b:2/mine/3", "redis+sentinel://a:1,b:2/mine/3"),
        ("rediss+cluster://:s3cret@[::1]", "rediss+cluster://[::1]:6379"),
    ],
)
def test_a_redis_password_is_never_shown(url: str, shown: str) -> None:
    address = parse_address(url)
    assert str(address) == shown
    assert SECRET not in repr(address)
