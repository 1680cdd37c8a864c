"""OAuth resource-server mode: bearer tokens are JWTs of an issuer the operator trusts."""

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import jwt

from emceepee.clock import Clock
from emceepee.guard.visitor import TurnedAway
from emceepee.json_types import JsonObject
from emceepee.telemetry.logs import EventLog

if TYPE_CHECKING:
    import aiohttp

log = EventLog("guard")

OAUTH_PATH, OPENID_PATH = "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"
KEY_SECONDS = 300.0  # after which keys are fetched anew
FETCH_SECONDS = 10.0
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]  # never a shared secret, never none
RESOURCE_PATH = "/.well-known/oauth-protected-resource"


class KeysUnavailable(Exception):
    """The issuer's keys cannot be had just now."""


class OAuthCheck:
    """Verifies tokens against the issuer's published keys."""

    def __init__(self, issuer: str, *, resource: str, scopes: tuple[str, ...], clock: Clock) -> None:
        self._issuer, self._resource, self._scopes, self._clock = issuer.rstrip("/"), resource, scopes, clock
        self._keys: dict[str | None, Any] = {}
        self._fetched_at: float | None = None
        self._fetching = asyncio.Lock()

    def metadata(self) -> JsonObject:
        """The protected-resource document, by which clients find the issuer."""
        return {
            "resource": self._resource,
            "authorization_servers": [self._issuer],
            "scopes_supported": list(self._scopes),
            "bearer_methods_supported": ["header"],
        }

    def challenge(self) -> bytes:
        origin = self._resource.removesuffix("/mcp")
        return f'Bearer resource_metadata="{origin}{RESOURCE_PATH}"'.encode()

    async def principal_of(self, token: str) -> str | TurnedAway:
        try:
            header = jwt.get_unverified_header(token)
            key = await self._key(header.get("kid"))
            claims = jwt.decode(
                token,
                key,
                algorithms=ALGORITHMS,
                audience=self._resource,
                options={"require": ["exp", "iss", "sub"], "verify_iss": False},
            )
        except KeysUnavailable as problem:
            log.warning("issuer_keys_unavailable", error=str(problem))
            return TurnedAway(503, "The authorization server's keys cannot be had just now; try again.")
        except (jwt.PyJWTError, KeyError, TypeError, ValueError):  # a key of another kind than the token claims
            return self._refused(401, "The token is not valid here; get a new one from the authorization server.")
        if str(claims["iss"]).rstrip("/") != self._issuer:
            return self._refused(401, "The token is of another issuer.")
        granted = str(claims.get("scope", "")).split()
        if missing := [scope for scope in self._scopes if scope not in granted]:
            error = f', error="insufficient_scope", scope="{" ".join(self._scopes)}"'.encode()
            headers = ((b"www-authenticate", self.challenge() + error),)
            return TurnedAway(403, f"The token lacks the scope {' '.join(missing)}.", headers)
        return f"{self._issuer}|{claims['sub']}"

    def _refused(self, status: int, message: str) -> TurnedAway:
        return TurnedAway(status, message, ((b"www-authenticate", self.challenge() + b', error="invalid_token"'),))

    async def _key(self, key_id: str | None) -> Any:
        """Raises: KeyError if the issuer has no such key, KeysUnavailable."""
        async with self._fetching:
            age = None if self._fetched_at is None else self._clock.monotonic() - self._fetched_at
            if age is None or age > KEY_SECONDS or (key_id not in self._keys and age > 1):
                self._keys = await self._fetch()
                self._fetched_at = self._clock.monotonic()
        return self._keys[key_id]

    async def _fetch(self) -> dict[str | None, Any]:
        import aiohttp  # here: it takes a tenth of the time to start, and few installations need it

        timeout = aiohttp.ClientTimeout(total=FETCH_SECONDS)
        try:
            async with aiohttp.ClientSession(timeout=timeout) as http:
                keys = jwt.PyJWKSet.from_dict(await self._document(http, await self._key_address(http)))
        except (aiohttp.ClientError, TimeoutError, ValueError, LookupError, jwt.PyJWTError) as error:
            raise KeysUnavailable(f"{type(error).__name__}: {error}") from error
        return {key.key_id: key.key for key in keys.keys}

    async def _key_address(self, http: "aiohttp.ClientSession") -> str:
        """From the issuer's metadata; an issuer with a path has it behind the well-known part, or before it."""
        parts = urlsplit(self._issuer)
        origin = f"{parts.scheme}://{parts.netloc}"
        for address in dict.fromkeys(
            (origin + OAUTH_PATH + parts.path, self._issuer + OPENID_PATH, self._issuer + OAUTH_PATH)
        ):
            async with http.get(address) as response:
                if response.status == 200:
                    return str((await response.json())["jwks_uri"])
        raise LookupError("the issuer publishes no metadata")

    async def _document(self, http: "aiohttp.ClientSession", address: str) -> JsonObject:
        async with http.get(address, raise_for_status=True) as response:
            document: JsonObject = await response.json(content_type=None)
            return document
