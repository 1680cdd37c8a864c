"""Where the documents lie that tell how to log in, and which addresses they may lead to."""

from urllib.parse import urlsplit, urlunsplit

from emceepee.backends.http1.address import Address

_RESOURCE = "/.well-known/oauth-protected-resource"
_OAUTH = "/.well-known/oauth-authorization-server"
_OPENID = "/.well-known/openid-configuration"
LONGEST_URL = 8192


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
    """Whether secrets may go there, or a person: HTTPS, or HTTP where the server itself is spoken to in HTTP."""
    try:
        parts, own = urlsplit(url), urlsplit(server_url)
        Address.of(url)
    except ValueError:
        return False
    if parts.username or parts.password or len(url) > LONGEST_URL or not url.isprintable():
        return False
    return parts.scheme == "https" or own.scheme == "http"


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
