"""The recipients of signatures can verify them."""

from datetime import UTC, datetime
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from jwt.algorithms import ECAlgorithm

from emceepee.backends.oauth.oauth_client import OAuthClient
from emceepee.backends.oauth.proofs import BadKey, client_assertion, dpop_proof, new_dpop_key

NOW = datetime.now(UTC)


def pem(key: Any) -> str:
    return str(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode())


def test_a_dpop_proof_is_valid_for_one_request_and_one_token() -> None:
    key = new_dpop_key()
    proofs = [
        dpop_proof(key, method="POST", url="https://u:p@a.example:8443/mcp?x=1#f", now=NOW, token="t", nonce="n")
        for _ in range(2)
    ]
    header = jwt.get_unverified_header(proofs[0])
    assert (header["typ"], header["alg"], sorted(header["jwk"])) == ("dpop+jwt", "ES256", ["crv", "kty", "x", "y"])
    public = ECAlgorithm.from_jwk(header["jwk"])
    claims = [jwt.decode(proof, public, algorithms=["ES256"]) for proof in proofs]  # type: ignore[arg-type]  # public
    numbers = [claim.pop("jti") for claim in claims]
    assert numbers[0] != numbers[1]
    assert claims[0] == {
        "htm": "POST",
        "htu": "https://a.example:8443/mcp",
        "iat": int(NOW.timestamp()),
        "ath": "47mKTaMaEn1L3m5DAz9muidMqw636xxw7EFAK_YnPdg",
        "nonce": "n",
    }


@pytest.mark.parametrize(
    ("key", "algorithm"),
    [
        (ec.generate_private_key(ec.SECP256R1()), "ES256"),
        (rsa.generate_private_key(public_exponent=65537, key_size=2048), "RS256"),
    ],
    ids=["elliptic", "rsa"],
)
def test_a_client_assertion_names_its_client_and_one_issuer(key: Any, algorithm: str) -> None:
    client = OAuthClient(client_id="me", private_key=pem(key), signing_algorithm=algorithm)
    signed = client_assertion(client, audience="https://login.example", now=NOW)
    claims = jwt.decode(
        signed,
        key.public_key(),
        algorithms=[algorithm],
        audience="https://login.example",
        options={"verify_exp": False},  # it may expire before the test run ends
    )
    assert (claims["iss"], claims["sub"]) == ("me", "me")
    assert claims["exp"] - claims["iat"] == 300


@pytest.mark.parametrize("algorithm", ["ES256", "nonsense", "HS256"])
def test_an_unusable_signing_key_is_named_but_not_shown(algorithm: str) -> None:
    client = OAuthClient(client_id="me", private_key="-----BEGIN canary-----", signing_algorithm=algorithm)
    with pytest.raises(BadKey) as caught:
        client_assertion(client, audience="https://login.example", now=NOW)
    assert "canary" not in str(caught.value)
    assert "private_key" in str(caught.value)
