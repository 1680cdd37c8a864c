"""What of a server's `tls` settings holds for those who are asked for its tokens.

Whoever gives a CA for a server means it to vouch for its logins, too, besides the usual ones: many servers in a private
network have their logins outside. But a client certificate is a way to be let in, and servers name whom they like as
their authorization server. So it is shown to the server's own origin, and to the issuer that is configured.
"""

from dataclasses import replace

from emceepee.backends.http1.address import Address
from emceepee.backends.http1.tls import TlsSettings


def login_tls(tls: TlsSettings | None, url: str, *, server_url: str, issuer: str | None) -> TlsSettings | None:
    """For a request to `url` in a login to that server."""
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
