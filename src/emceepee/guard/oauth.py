"""OAuth resource-server mode: bearer tokens are JWTs of an issuer the operator trusts."""

import asyncio
from typing import Any

import aiohttp
import jwt

from emceepee.clock import Clock
from emceepee.guard.visitor import TurnedAway
from emceepee.json_types import JsonObject

METADATA_PATHS = ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration")
KEY_SECONDS = 300.0  # after which keys are fetched anew
FETCH_SECONDS = 10.0
ALGORITHMS = ["RS256", "RS384", "RS512", "PS256", "ES256", "ES384", "EdDSA"]  # never a shared secret, never none
RESOURCE_PATH = "/.well-known/oauth-protected-resource"


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
        except (jwt.PyJWTError, KeyError):
            return self._refused(401, "The token is not valid here; get a new one from the authorization server.")
        except (aiohttp.ClientError, TimeoutError, ValueError):
            return TurnedAway(503, "The authorization server's keys cannot be had just now; try again.")
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
        """Raises: KeyError if the issuer has no such key."""
        async with self._fetching:
            age = None if self._fetched_at is None else self._clock.monotonic() - self._fetched_at
            if age is None or age > KEY_SECONDS or (key_id not in self._keys and age > 1):
                self._keys = await self._fetch()
                self._fetched_at = self._clock.monotonic()
        return self._keys[key_id]

    async def _fetch(self) -> dict[str | None, Any]:
        timeout = aiohttp.ClientTimeout(total=FETCH_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as http:
            for path in METADATA_PATHS:
                async with http.get(self._issuer + path) as response:
                    if response.status == 200:
                        address = (await response.json())["jwks_uri"]
                        break
            else:
                raise ValueError("the issuer publishes no metadata")
            async with http.get(address) as response:
                keys = jwt.PyJWKSet.from_dict(await response.json())
        return {key.key_id: key.key for key in keys.keys}
