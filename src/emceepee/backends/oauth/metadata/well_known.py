"""Where the documents lie that tell how to log in, and which addresses they may lead to."""

import re
from ipaddress import ip_address
from urllib.parse import urlsplit, urlunsplit

from emceepee.backends.http1.address import Address, is_unix_url

_RESOURCE = "/.well-known/oauth-protected-resource"
_OAUTH = "/.well-known/oauth-authorization-server"
_OPENID = "/.well-known/openid-configuration"
LONGEST_URL = 8192
_PLAIN_HOST = re.compile(r"[a-z0-9._:-]+")


def resource_metadata_urls(server_url: str, named: str | None) -> tuple[str, ...]:
    """The one that the challenge names, then the well-known ones: with the server's path, and without (RFC 9728)."""
    origin, path = _split(server_url)
    given = (named,) if named is not None else ()
    with_path = (f"{origin}{_RESOURCE}{path}",) if path.strip("/") else ()
    return tuple(dict.fromkeys((*given, *with_path, f"{origin}{_RESOURCE}")))


def server_metadata_urls(issuer: str) -> tuple[str, ...]:
    """RFC 8414 with the path inserted, OpenID Connect with it inserted, OpenID Connect appended to it."""
    origin, path = _split(issuer)
    path = path.rstrip("/")
    if not path:
        return (f"{origin}{_OAUTH}", f"{origin}{_OPENID}")
    return (f"{origin}{_OAUTH}{path}", f"{origin}{_OPENID}{path}", f"{origin}{path}{_OPENID}")


def origin_of(url: str) -> str:
    return _split(url)[0]


def canonical_resource(server_url: str) -> str:
    """A server as a resource: without a fragment, and without what is for us alone."""
    parts = urlsplit(server_url)
    netloc = parts.netloc.rpartition("@")[2].lower()
    return urlunsplit((parts.scheme.lower(), netloc, parts.path, parts.query, ""))


def covers(resource: str, server_url: str) -> bool:
    """Whether metadata of `resource` may speak for the server: the same origin, and its path or one above it."""
    try:
        if Address.of(resource).origin != Address.of(server_url).origin:
            return False
    except ValueError:
        return False
    above, below = urlsplit(resource).path.rstrip("/") + "/", urlsplit(server_url).path.rstrip("/") + "/"
    return below.startswith(above)


def same_issuer(document: str, asked: str) -> bool:
    """Character by character; but a bare origin is the same with a slash and without: many writers add one."""
    if document == asked:
        return True
    shorter, longer = sorted((document, asked), key=len)
    return longer == f"{shorter}/" and origin_of(shorter) == shorter


def is_trustworthy(url: str, server_url: str) -> bool:
    """Return whether a login may send secrets to `url`: it has TLS, or neither it nor the server has.

    Only http and https count. Anything else, such as a Unix socket, is on this machine, and metadata may not name it.
    """
    try:
        parts, own = urlsplit(url), urlsplit(server_url)
        is_web = not is_unix_url(url) and Address.of(url).origin.socket_path is None
    except ValueError:
        return False
    if parts.username or parts.password or len(url) > LONGEST_URL or not url.isprintable() or "\\" in url:
        return False  # browsers read a backslash as a slash, so the host that they open would be another one
    return is_web and (parts.scheme == "https" or own.scheme == "http")


def is_openable(url: str, server_url: str) -> bool:
    """Return whether a person may be sent to `url`.

    Beyond loopback a page needs TLS, because passwords are typed there. The host of a server without TLS is excepted:
    everything that is sent to that server can be read on the way already.
    """
    if not is_trustworthy(url, server_url):
        return False
    parts = urlsplit(url)
    host = parts.hostname or ""
    if _PLAIN_HOST.fullmatch(host) is None:
        return False  # a browser may open another host than the one that the question names
    return parts.scheme == "https" or is_loopback_host(host) or host == urlsplit(server_url).hostname


def is_loopback_host(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_client_metadata_url(url: str) -> bool:
    """Whether it can be a client id: HTTPS, with a path, without a fragment or credentials."""
    try:
        parts = urlsplit(url)
        Address.of(url)
    except ValueError:
        return False
    return parts.scheme == "https" and parts.path not in ("", "/") and not parts.fragment and parts.username is None


def _split(url: str) -> tuple[str, str]:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}", parts.path
