"""When keys are fetched, which callers wait, and which keys are accepted."""

import asyncio

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from emceepee.guard.issuer_keys import (
    FRESH_SECONDS,
    PAUSE_SECONDS,
    STALE_SECONDS,
    IssuerKeys,
    Keys,
    KeysUnavailable,
    VerifyingKey,
    verifying_keys,
)
from emceepee.wire.json_types import JsonObject
from support.fakes.clock import FakeClock, settle


class Source:
    """The keys of an issuer that can be slow or unavailable."""

    def __init__(self, clock: FakeClock, *names: str) -> None:
        self.clock, self.names = clock, names
        self.fetches = 0
        self.is_down = False
        self.seconds = 0.0

    async def fetch(self) -> Keys:
        self.fetches += 1
        if self.seconds:
            await self.clock.sleep(self.seconds)
        if self.is_down:
            raise KeysUnavailable("down")
        return {name: VerifyingKey(name, ("ES256",)) for name in self.names}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def source(clock: FakeClock) -> Source:
    return Source(clock, "a")


@pytest.fixture
def keys(source: Source, clock: FakeClock) -> IssuerKeys:
    return IssuerKeys(source.fetch, clock)


async def test_concurrent_callers_share_one_fetch_of_issuer_keys(source: Source, keys: IssuerKeys) -> None:
    found = await asyncio.gather(*(keys.find("a") for _ in range(10)))
    assert ({key.key for key in found}, source.fetches) == ({"a"}, 1)


async def test_an_unknown_key_id_causes_at_most_one_fetch_per_pause(
    source: Source, keys: IssuerKeys, clock: FakeClock
) -> None:
    await keys.find("a")
    for _ in range(100):
        with pytest.raises(KeyError):
            await keys.find("made up")
    assert source.fetches == 1
    await clock.advance(PAUSE_SECONDS + 0.1)
    source.names = ("a", "b")
    assert (await keys.find("b")).key == "b"
    assert source.fetches == 2


async def test_a_caller_with_a_known_key_id_does_not_wait_for_the_fetch_of_another(
    source: Source, keys: IssuerKeys, clock: FakeClock
) -> None:
    await keys.find("a")
    await clock.advance(PAUSE_SECONDS + 0.1)
    source.seconds = 5
    other = asyncio.create_task(_is_unknown(keys, "b"))
    await settle()
    async with asyncio.timeout(1):
        assert (await keys.find("a")).key == "a"
    assert not other.done()
    await clock.advance(6)
    assert await other


async def _is_unknown(keys: IssuerKeys, key_id: str) -> bool:
    with pytest.raises(KeyError):
        await keys.find(key_id)
    return True


async def test_old_issuer_keys_are_used_for_a_limited_time_while_new_ones_are_fetched(
    source: Source, keys: IssuerKeys, clock: FakeClock
) -> None:
    await keys.find("a")
    await clock.advance(FRESH_SECONDS + 1)
    source.is_down = True
    assert (await keys.find("a")).key == "a"
    await settle()
    assert source.fetches == 2
    await clock.advance(STALE_SECONDS)
    with pytest.raises(KeysUnavailable, match="down"):
        await keys.find("a")
    source.is_down = False
    with pytest.raises(KeysUnavailable):
        await keys.find("a")
    await clock.advance(PAUSE_SECONDS + 0.1)
    assert (await keys.find("a")).key == "a"


async def test_a_withdrawn_issuer_key_is_rejected_after_the_next_fetch(
    source: Source, keys: IssuerKeys, clock: FakeClock
) -> None:
    await keys.find("a")
    source.names = ("b",)
    await clock.advance(FRESH_SECONDS + 1)
    await keys.find("a")
    await settle()
    with pytest.raises(KeyError):
        await keys.find("a")


async def test_a_cancelled_caller_does_not_cancel_the_key_fetch_for_others(
    source: Source, keys: IssuerKeys, clock: FakeClock
) -> None:
    source.seconds = 5
    first, second = asyncio.create_task(keys.find("a")), asyncio.create_task(keys.find("a"))
    await settle()
    first.cancel()
    await clock.advance(6)
    assert (await second).key == "a"
    assert source.fetches == 1


def public(key: object, **more: object) -> JsonObject:
    kinds = {
        ec.EllipticCurvePrivateKey: jwt.algorithms.ECAlgorithm,
        rsa.RSAPrivateKey: jwt.algorithms.RSAAlgorithm,
        ed25519.Ed25519PrivateKey: jwt.algorithms.OKPAlgorithm,
    }
    kind = next(algorithm for type_, algorithm in kinds.items() if isinstance(key, type_))
    return dict(kind.to_jwk(key.public_key(), as_dict=True)) | {"kid": "k"} | more  # type: ignore[attr-defined]


EC256, EC384 = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP384R1())
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ED = ed25519.Ed25519PrivateKey.generate()


@pytest.mark.parametrize(
    ("key", "algorithms"),
    [
        (public(EC256), ("ES256",)),
        (public(EC384), ("ES384",)),
        (public(ED), ("EdDSA",)),
        (public(RSA), ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
        (public(RSA, alg="PS256"), ("PS256",)),
        (public(RSA, use="sig", key_ops=["verify"]), ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")),
    ],
)
def test_an_issuer_key_verifies_the_algorithms_of_its_type(key: JsonObject, algorithms: tuple[str, ...]) -> None:
    assert verifying_keys({"keys": [key]})["k"].algorithms == algorithms


@pytest.mark.parametrize(
    "key",
    [
        public(EC256, use="enc"),
        public(EC256, use="SIG"),
        public(EC256, key_ops=["sign"]),
        public(EC256, key_ops="verify"),
        public(EC256, alg="HS256"),
        public(EC256, alg="none"),
        public(RSA, alg="ES256"),
        public(EC256, alg="ES384"),
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k"},
        {"kty": "oct", "k": "c2VjcmV0", "kid": "k", "alg": "HS256", "use": "sig"},
        public(EC256, x="!"),
        public(EC256, kty=["EC"]),
        {"kid": "k"},
        "k",
        None,
    ],
)
def test_an_unusable_issuer_key_is_ignored_without_affecting_others(key: object) -> None:
    good = public(EC256, kid="good")
    assert list(verifying_keys({"keys": [key, good, key]})) == ["good"]


@pytest.mark.parametrize("document", [{}, {"keys": None}, {"keys": {}}, {"keys": []}])
def test_a_key_document_without_keys_yields_none(document: JsonObject) -> None:
    assert verifying_keys(document) == {}
