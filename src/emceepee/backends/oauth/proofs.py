"""Signs client assertions (RFC 7523), and proofs that a token's sender is its owner (DPoP, RFC 9449).

PyJWT is imported at the first signature, because the import is slow.
"""

import hashlib
import secrets
from base64 import urlsafe_b64encode
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.oauth_settings import SIGNING_ALGORITHMS

DPOP_ALGORITHM = "ES256"
ASSERTION_LIFE = timedelta(minutes=5)
_KEYS_KEPT = 256


class BadKey(ValueError):
    """The configured key cannot sign. The text does not contain the key."""


def new_dpop_key() -> str:
    """Return a new private key for one token, in PEM format."""
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = ec.generate_private_key(ec.SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def dpop_proof(
    key: str, *, method: str, url: str, now: datetime, token: str | None = None, nonce: str | None = None
) -> str:
    """Return the DPoP proof for a single request. `token` is the access token that the request carries."""
    claims: dict[str, Any] = {
        "jti": secrets.token_urlsafe(16),
        "htm": method,
        "htu": _bare(url),
        "iat": int(now.timestamp()),
    }
    if token is not None:
        claims["ath"] = _digest(token)
    if nonce is not None:
        claims["nonce"] = nonce
    private, public = _dpop_keys(key)
    return _sign(claims, private, DPOP_ALGORITHM, {"typ": "dpop+jwt", "jwk": public})


def client_assertion(client: OAuthClient, *, audience: str, now: datetime) -> str:
    """Raises: BadKey."""
    claims = {
        "iss": client.client_id,
        "sub": client.client_id,
        "aud": audience,
        "jti": secrets.token_urlsafe(16),
        "iat": int(now.timestamp()),
        "exp": int((now + ASSERTION_LIFE).timestamp()),
    }
    return _sign(claims, client.private_key or "", client.signing_algorithm, {})


def _sign(claims: dict[str, Any], key: Any, algorithm: str, headers: dict[str, Any]) -> str:
    import jwt

    try:
        if algorithm not in SIGNING_ALGORITHMS:
            raise ValueError(algorithm)
        return jwt.encode(claims, key, algorithm=algorithm, headers=headers)
    except (jwt.PyJWTError, ValueError, TypeError, NotImplementedError):  # the last: PyJWT cannot use that type of key
        raise BadKey(
            f"The private_key in the server's oauth settings cannot sign with {algorithm}. It must be the text of a"
            " PEM file, and signing_algorithm must fit it"
        ) from None


@lru_cache(_KEYS_KEPT)
def _dpop_keys(key: str) -> tuple[Any, dict[str, Any]]:
    from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key
    from jwt.algorithms import ECAlgorithm

    private = load_pem_private_key(key.encode(), None)
    assert isinstance(private, EllipticCurvePrivateKey)  # `new_dpop_key` made it
    public = ECAlgorithm.to_jwk(private.public_key(), as_dict=True)
    return private, {name: public[name] for name in ("kty", "crv", "x", "y")}


def _bare(url: str) -> str:
    """Return the URL without credentials, query, and fragment."""
    parts = urlsplit(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def _digest(token: str) -> str:
    return urlsafe_b64encode(hashlib.sha256(token.encode("ascii")).digest()).rstrip(b"=").decode()
