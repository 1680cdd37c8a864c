"""Which of a server's `tls` settings apply to the requests of its logins.

A CA that is configured for a server is also trusted for its logins, in addition to the system's CAs: many servers in a
private network have a public authorization server. A client certificate is a credential, and a server can name any
authorization server. So the client certificate goes only to the server's own origin and to the configured issuer.
"""

from dataclasses import replace

from emceepee.backends.http1.origin import Address
from emceepee.backends.http1.tls_contexts import TlsSettings


def login_tls(tls: TlsSettings | None, url: str, *, server_url: str, issuer: str | None) -> TlsSettings | None:
    """Return the TLS settings for a request to `url` during a login to the server at `server_url`."""
    if tls is None or _is_same_origin(url, server_url):
        return tls
    if issuer is not None and _is_same_origin(url, issuer):
        return replace(tls, server_name=None, insecure=False, is_added=True)
    return None if tls.ca is None else TlsSettings(ca=tls.ca, is_added=True)


def _is_same_origin(one: str, other: str) -> bool:
    try:
        return Address.of(one).origin == Address.of(other).origin
    except ValueError:
        return False
