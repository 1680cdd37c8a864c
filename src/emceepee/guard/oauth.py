"""OAuth resource-server mode: bearer tokens are JWTs from an issuer that the operator trusts."""

import jwt

from emceepee.backends.http1.egress import NOTHING_SET, EgressSettings
from emceepee.clock import Clock
from emceepee.guard.caller_identity import Rejection
from emceepee.guard.issuer_keys import IssuerKeys, KeysUnavailable, fetch_keys
from emceepee.wire.json_types import JsonObject
from emceepee.wire.protocol import RESOURCE_PATH


class OAuthCheck:
    """Verifies tokens against the issuer's published keys."""

    def __init__(
        self,
        issuer: str,
        *,
        resource: str,
        scopes: tuple[str, ...],
        clock: Clock,
        egress: EgressSettings = NOTHING_SET,
    ) -> None:
        tls = egress.contexts().of(None)
        self._issuer, self._resource, self._scopes = issuer.rstrip("/"), resource, scopes
        self._keys = IssuerKeys(lambda: fetch_keys(self._issuer, clock, tls, egress.proxies), clock)

    async def close(self) -> None:
        await self._keys.close()

    def metadata(self) -> JsonObject:
        """Return the protected-resource metadata, which tells clients the issuer."""
        return {
            "resource": self._resource,
            "authorization_servers": [self._issuer],
            "scopes_supported": list(self._scopes),
            "bearer_methods_supported": ["header"],
        }

    def challenge(self) -> bytes:
        origin = self._resource.removesuffix("/mcp")
        return f'Bearer resource_metadata="{origin}{RESOURCE_PATH}"'.encode()

    async def principal_of(self, token: str) -> str | Rejection:
        try:
            key = await self._keys.find(jwt.get_unverified_header(token).get("kid"))
            claims = jwt.decode(
                token,
                key.key,
                algorithms=key.algorithms,
                audience=self._resource,
                options={"require": ["exp", "iss", "sub"], "verify_iss": False},
            )
        except KeysUnavailable:
            return Rejection(503, "The authorization server's keys are unavailable at this time; try again.")
        except (jwt.PyJWTError, KeyError, TypeError, ValueError):  # for example, the token names a key of another type
            return self._refused(401, "The token is not valid here; get a new one from the authorization server.")
        if str(claims["iss"]).rstrip("/") != self._issuer:
            return self._refused(401, "The token is from another issuer.")
        if not str(claims["sub"]).strip():  # all tokens without a subject would share one principal
            return self._refused(401, "The token has no subject.")
        granted = str(claims.get("scope", "")).split()
        if missing := [scope for scope in self._scopes if scope not in granted]:
            error = f', error="insufficient_scope", scope="{" ".join(self._scopes)}"'.encode()
            headers = ((b"www-authenticate", self.challenge() + error),)
            return Rejection(403, f"The token lacks the scope {' '.join(missing)}.", headers)
        return f"{self._issuer}|{claims['sub']}"

    def _refused(self, status: int, message: str) -> Rejection:
        return Rejection(status, message, ((b"www-authenticate", self.challenge() + b', error="invalid_token"'),))
