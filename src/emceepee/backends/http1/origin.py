"""Parses the URL of a request into its origin, authority, and target."""

from base64 import b64encode
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

_PORTS = {"http": 80, "https": 443}
_UNIX = -1  # stands in for the port of a Unix socket
_UNIX_SCHEME = "unix://"
_UNIX_HOST = "localhost"  # for the Host header, which HTTP requires
_HERE = f"http://{_UNIX_HOST}"  # base URL of a server behind a Unix socket, for resolving relative URLs
LONGEST_SOCKET_PATH = 103  # bytes; every supported system accepts paths of this length
_SENT_AS_THEY_ARE = "!$%&'()*+,/:;=?@[]~"  # includes "%", so that a quoted address is not quoted twice


class HttpOrigin(NamedTuple):
    """The endpoint of a connection: a host and port, or a Unix socket."""

    is_tls: bool
    host: str
    port: int

    @classmethod
    def of_socket(cls, path: str) -> "HttpOrigin":
        """Return the origin of a Unix socket."""
        return cls(False, path, _UNIX)

    @property
    def socket_path(self) -> str | None:
        return self.host if self.port == _UNIX else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    origin: HttpOrigin
    authority: str  # the value of the Host header
    target: str
    credentials: str | None  # from the URL, as the value of an Authorization header

    @classmethod
    def of(cls, url: str) -> "Address":
        """Raises: ValueError."""
        if is_unix_url(url):
            path, target = _unix_parts(url)
            origin = HttpOrigin.of_socket(path)
            return cls(
                origin=origin, authority=_UNIX_HOST, target=_quoted_target(urlsplit(_HERE + target)), credentials=None
            )
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("the address has no host, or is not one of http or https")
        host = parts.hostname.replace("%25", "%")  # the separator before the zone of an IPv6 address
        host = host if host.isascii() else host.encode("idna").decode()
        if not host.isprintable() or " " in host:
            raise ValueError("the address has a host that cannot be one")
        port = parts.port if parts.port is not None else _PORTS[parts.scheme]
        return cls(
            origin=HttpOrigin(parts.scheme == "https", host, port),
            authority=authority(host, port if port != _PORTS[parts.scheme] else None),
            target=_quoted_target(parts),
            credentials=basic_credentials(parts),
        )

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


def is_unix_url(url: str) -> bool:
    return url[: len(_UNIX_SCHEME)].lower() == _UNIX_SCHEME


def join(url: str, location: str) -> str:
    """Resolve `location`, which may be relative, against `url`. Raises: ValueError."""
    if not is_unix_url(url):
        return urljoin(url, location)
    path, target = _unix_parts(url)
    joined = urljoin(_HERE + target, location)
    return f"{_UNIX_SCHEME}{path}:{joined.removeprefix(_HERE)}" if joined.startswith(f"{_HERE}/") else joined


def place_of(url: str) -> str:
    """Return the host and port, or the path of a socket, for messages. Passwords and tokens in the URL's path are
    omitted.
    """
    return _unix_parts(url)[0] if is_unix_url(url) else urlsplit(url).netloc.rpartition("@")[2]


def _unix_parts(url: str) -> tuple[str, str]:
    """Split a Unix URL into the path of the socket and the request target."""
    rest = url[len(_UNIX_SCHEME) :]
    path, _, target = rest.partition(":/")
    target = f"/{target}"
    if not path.startswith("/") or len(path) < 2 or "\0" in path:
        raise ValueError("expected unix:///PATH/OF/SOCKET:/PATH, as in unix:///run/tracker.sock:/mcp")
    if len(path.encode()) > LONGEST_SOCKET_PATH:
        raise ValueError(f"the path of a socket may have at most {LONGEST_SOCKET_PATH} bytes")
    return path, target


def _quoted_target(parts: SplitResult) -> str:
    target = quote(parts.path or "/", safe=_SENT_AS_THEY_ARE)
    return f"{target}?{quote(parts.query, safe=_SENT_AS_THEY_ARE)}" if parts.query else target


def authority(host: str, port: int | None) -> str:
    name = f"[{host.partition('%')[0]}]" if ":" in host else host  # zones are meaningful on this machine only
    return name if port is None else f"{name}:{port}"


def basic_credentials(parts: SplitResult) -> str | None:
    if parts.username is None and parts.password is None:
        return None
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"
