"""Which requests of a login use the TLS settings of a server."""

import pytest

from emceepee.backends.http1.tls_contexts import TlsSettings
from emceepee.backends.oauth.oauth_sender import login_tls

SERVER, ISSUER = "https://tracker.test/mcp", "https://login.test/tenant"
FULL = TlsSettings(ca="ca.pem", cert="ours.pem", key="ours.key", server_name="other.test", insecure=True)


@pytest.mark.parametrize(
    ("url", "issuer", "expected"),
    [
        ("https://tracker.test/token", None, FULL),
        ("https://tracker.test:443/token", ISSUER, FULL),
        (
            "https://login.test/token",
            ISSUER,
            TlsSettings(ca="ca.pem", cert="ours.pem", key="ours.key", is_added=True),
        ),
        ("https://login.test/token", None, TlsSettings(ca="ca.pem", is_added=True)),
        ("https://login.test:8443/token", ISSUER, TlsSettings(ca="ca.pem", is_added=True)),
        ("https://tracker.test:8443/token", ISSUER, TlsSettings(ca="ca.pem", is_added=True)),
        ("https://tracker.test.evil.test/token", ISSUER, TlsSettings(ca="ca.pem", is_added=True)),
    ],
)
def test_a_client_certificate_goes_only_to_the_origin_of_its_server_and_the_configured_issuer(
    url: str, issuer: str | None, expected: TlsSettings
) -> None:
    assert login_tls(FULL, url, server_url=SERVER, issuer=issuer) == expected


def test_without_tls_settings_no_client_certificate_goes_to_the_authorization_server() -> None:
    assert login_tls(None, "https://login.test/token", server_url=SERVER, issuer=None) is None
    only_ours = TlsSettings(cert="ours.pem")
    assert login_tls(only_ours, "https://login.test/token", server_url=SERVER, issuer=None) is None
