"""Fetches and caches the public keys of an authorization server, and restricts each key to its purpose."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import jwt

from emceepee.backends.http1.http_client import HttpClient
from emceepee.backends.http1.http_failures import HttpFailure
from emceepee.backends.http1.pool import ConnectionPool
from emceepee.backends.http1.proxies import DIRECT, ProxyRules
from emceepee.clock import Clock, give_up_after
from emceepee.lifecycle import CLOSE_IDLE_SECONDS, TaskOwner
from emceepee.telemetry.logs import EventLog
from emceepee.wire.codec import decode
from emceepee.wire.json_types import JsonObject

log = EventLog("guard")
OAUTH_PATH, OPENID_PATH = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
FETCH_SECONDS = 10.0
FRESH_SECONDS = 300.0  # after which keys are fetched again, while cached keys remain in use
STALE_SECONDS = 900.0  # after which cached keys expire: an unreachable issuer may have revoked them
PAUSE_SECONDS = 1.0  # minimum time between two fetches, for all callers together
NEVER = float("-inf")
DOCUMENT_BYTES = 1 << 20
MOST_CONNECTIONS = 2  # the keys may have another origin than the metadata
MOST_KEYS = 100
# The algorithms for each key type. HMAC and "none" are excluded (algorithm confusion).
_BY_KIND = {
    "RSA": ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    "EC P-256": ("ES256",),
    "EC P-384": ("ES384",),
    "EC P-521": ("ES512",),
    "OKP Ed25519": ("EdDSA",),
}


class KeysUnavailable(Exception):
    """The issuer's keys are temporarily unavailable."""


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A public key, and the signature algorithms that it may verify."""

    key: Any
    algorithms: tuple[str, ...]


Keys = dict[str | None, VerifyingKey]


class IssuerKeys:
    """A cache of keys. A fresh key is returned without a fetch. Callers that need a fetch share one."""

    def __init__(self, fetch: Callable[[], Awaitable[Keys]], clock: Clock) -> None:
        self._fetch, self._clock = fetch, clock
        self._keys: Keys = {}
        self._fetched_at = self._tried_at = NEVER
        self._problem = ""  # the error of the last fetch, if it failed
        self._fetching: asyncio.Task[None] | None = None
        self._tasks = TaskOwner("issuer-keys")

    async def find(self, key_id: str | None) -> VerifyingKey:
        """Raises: KeyError if the issuer has no such key, KeysUnavailable."""
        if key_id in self._keys and self._age() <= STALE_SECONDS:
            if self._age() > FRESH_SECONDS:
                self._refresh()
            return self._keys[key_id]
        if (fetching := self._refresh()) is not None:
            await asyncio.shield(fetching)
        if self._problem and (key_id not in self._keys or self._age() > STALE_SECONDS):
            raise KeysUnavailable(self._problem)
        return self._keys[key_id]

    async def close(self) -> None:
        await self._tasks.close(within=CLOSE_IDLE_SECONDS)

    def _age(self) -> float:
        return self._clock.monotonic() - self._fetched_at

    def _refresh(self) -> "asyncio.Task[None] | None":
        """Return the fetch in progress, or start one.

        Return None within PAUSE_SECONDS of the last fetch, so that made-up key IDs cause no load on the issuer.
        """
        if self._fetching is None and self._clock.monotonic() - self._tried_at > PAUSE_SECONDS:
            self._fetching = self._tasks.spawn(self._run_fetch(), name="fetch")
        return self._fetching

    async def _run_fetch(self) -> None:
        try:
            self._keys = await self._fetch()
            self._fetched_at, self._problem = self._clock.monotonic(), ""
        except KeysUnavailable as problem:
            self._problem = str(problem)
            log.warning("issuer_keys_unavailable", error=self._problem)
        finally:
            self._tried_at, self._fetching = self._clock.monotonic(), None


# Fetching.


async def fetch_keys(issuer: str, clock: Clock, tls: ssl.SSLContext, proxies: ProxyRules = DIRECT) -> Keys:
    """Raises: KeysUnavailable."""
    try:
        async with ConnectionPool.running(clock, tls, in_all=MOST_CONNECTIONS, proxies=proxies) as pool:
            address = await _key_address(issuer, lambda url: fetch_document(pool, url))
            keys = await fetch_document(pool, address)
    except (HttpFailure, TimeoutError, ValueError, LookupError) as error:
        raise KeysUnavailable(f"{type(error).__name__}: {error}") from error
    if keys is None:
        raise KeysUnavailable("the address in the metadata returns no key set, or redirects")
    return verifying_keys(keys)


async def fetch_document(pool: ConnectionPool, url: str) -> JsonObject | None:
    """Return the JSON object at the URL, or None if it is missing.

    Redirects are not followed, because an attacker who can create one could substitute the keys.

    Raises:
        HttpFailure, TimeoutError, ValueError
    """
    client = HttpClient(pool, url, {"accept": "application/json"})
    async with give_up_after(pool.clock, FETCH_SECONDS):
        response = await client.request("GET")
        if response.status != 200:
            response.close()
            return None
        found = decode(await response.read(DOCUMENT_BYTES))
    return found if isinstance(found, dict) else None


async def _key_address(issuer: str, document: Callable[[str], Awaitable[JsonObject | None]]) -> str:
    """Return the key URL from the issuer's metadata. An issuer's path may follow or precede the well-known part."""
    parts = urlsplit(issuer)
    origin = f"{parts.scheme}://{parts.netloc}"
    problem = "the issuer publishes no metadata"
    for address in dict.fromkeys((origin + OAUTH_PATH + parts.path, issuer + OPENID_PATH, issuer + OAUTH_PATH)):
        if (metadata := await document(address)) is None:
            continue
        keys = str(metadata.get("jwks_uri"))
        if str(metadata.get("issuer")).rstrip("/") != issuer:
            problem = f"the metadata at {address} belongs to another issuer"
        elif urlsplit(keys).scheme not in ("https", parts.scheme):  # another scheme could be a Unix socket
            problem = f"the keys named in {address} would not be fetched over TLS"
        else:
            return keys
    raise LookupError(problem)


def verifying_keys(document: JsonObject) -> Keys:
    """Return the signature verification keys of a key set, by their IDs."""
    listed = document.get("keys")
    found: Keys = {}
    for data in listed[:MOST_KEYS] if isinstance(listed, list) else ():
        if isinstance(data, dict) and (key := _verifying_key(data)) is not None:
            key_id = data.get("kid")
            found[key_id if isinstance(key_id, str) else None] = key
    return found


def _verifying_key(data: JsonObject) -> VerifyingKey | None:
    operations = data.get("key_ops")
    is_for_verifying = operations is None or (isinstance(operations, list) and "verify" in operations)
    if data.get("use", "sig") != "sig" or not is_for_verifying:
        return None
    kind, own = data.get("kty"), data.get("alg")
    algorithms = _BY_KIND.get(f"{kind}" if kind == "RSA" else f"{kind} {data.get('crv')}", ())
    if own is not None:  # a key that names its algorithm must not be used with another
        algorithms = tuple(name for name in algorithms if name == own)
    if not algorithms:
        return None
    try:
        return VerifyingKey(jwt.PyJWK(data, algorithm=algorithms[0]).key, algorithms)
    except (jwt.PyJWTError, ValueError, TypeError, KeyError):
        return None
