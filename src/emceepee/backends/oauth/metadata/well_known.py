"""The URLs of the metadata documents, and the checks of the URLs that these documents name."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit, urlunsplit

from emceepee.backends.http1.origin import Address, is_unix_url

_RESOURCE = "/.well-known/oauth-protected-resource"
_OAUTH = "/.well-known/oauth-authorization-server"
_OPENID = "/.well-known/openid-configuration"
LONGEST_URL = 8192
_PLAIN_HOST = re.compile(r"[a-z0-9._:-]+")


def resource_metadata_urls(server_url: str, named: str | None) -> tuple[str, ...]:
    """Return the URL in the challenge, then the well-known URLs with and without the server's path (RFC 9728)."""
    origin, path = _split(server_url)
    explicit = (named,) if named is not None else ()
    with_path = (f"{origin}{_RESOURCE}{path}",) if path.strip("/") else ()
    return tuple(dict.fromkeys((*explicit, *with_path, f"{origin}{_RESOURCE}")))


def server_metadata_urls(issuer: str) -> tuple[str, ...]:
    """Return the metadata URLs: RFC 8414 and OpenID Connect before the path, then OpenID Connect after the path."""
    origin, path = _split(issuer)
    path = path.rstrip("/")
    if not path:
        return (f"{origin}{_OAUTH}", f"{origin}{_OPENID}")
    return (f"{origin}{_OAUTH}{path}", f"{origin}{_OPENID}{path}", f"{origin}{path}{_OPENID}")


def origin_of(url: str) -> str:
    return _split(url)[0]


def canonical_resource(server_url: str) -> str:
    """Return the resource identifier of a server: its URL without credentials and fragment."""
    parts = urlsplit(server_url)
    netloc = parts.netloc.rpartition("@")[2].lower()
    return urlunsplit((parts.scheme.lower(), netloc, parts.path, parts.query, ""))


def covers(resource: str, server_url: str) -> bool:
    """Return whether metadata of `resource` applies to the server: the same origin, and the same or a parent path."""
    try:
        if Address.of(resource).origin != Address.of(server_url).origin:
            return False
    except ValueError:
        return False
    above, below = urlsplit(resource).path.rstrip("/") + "/", urlsplit(server_url).path.rstrip("/") + "/"
    return below.startswith(above)


def same_issuer(document: str, asked: str) -> bool:
    """Compare issuers exactly, but ignore a slash after a bare origin, because many documents add one."""
    if document == asked:
        return True
    shorter, longer = sorted((document, asked), key=len)
    return longer == f"{shorter}/" and origin_of(shorter) == shorter


def is_trustworthy(url: str, server_url: str) -> bool:
    """Return whether a login may send secrets to `url`: it uses TLS, or neither it nor the server does.

    Only http and https are allowed. Metadata must not name other addresses, such as Unix sockets of this machine.
    """
    try:
        parts, own = urlsplit(url), urlsplit(server_url)
        is_web = not is_unix_url(url) and Address.of(url).origin.socket_path is None
    except ValueError:
        return False
    if parts.username or parts.password or len(url) > LONGEST_URL or not url.isprintable() or "\\" in url:
        return False  # browsers read a backslash as a slash, so they would open another host
    return is_web and (parts.scheme == "https" or own.scheme == "http")


def is_openable(url: str, server_url: str) -> bool:
    """Return whether a person may be sent to `url`.

    A page outside loopback needs TLS, because people type passwords there. The host of a server without TLS is an
    exception: an eavesdropper can already read everything sent to that server.
    """
    if not is_trustworthy(url, server_url):
        return False
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _PLAIN_HOST.fullmatch(host) is None:
        return False  # a browser may open another host than the displayed one
    return parts.scheme == "https" or is_loopback_host(host) or host == urlsplit(server_url).hostname


def is_loopback_host(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_client_metadata_url(url: str) -> bool:
    """Return whether the URL can be a client ID: HTTPS, with a path, without a fragment or user name."""
    try:
        parts = urlsplit(url)
        Address.of(url)
    except ValueError:
        return False
    return parts.scheme == "https" and parts.path not in ("", "/") and not parts.fragment and parts.username is None


def _split(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", parts.path
