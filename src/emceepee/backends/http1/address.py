"""Where a request goes, taken apart once."""

from base64 import b64encode
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

_PORTS = {"http": 80, "https": 443}
_UNIX = -1  # where others have a port
_UNIX_SCHEME = "unix://"
_UNIX_HOST = "localhost"  # in the Host header, which must say something
_HERE = f"http://{_UNIX_HOST}"  # as a server behind a Unix socket knows itself
LONGEST_SOCKET_PATH = 103  # bytes, on every system
_SENT_AS_THEY_ARE = "!$%&'()*+,/:;=?@[]~"  # "%" too: an address that was quoted is not quoted twice


class Origin(NamedTuple):
    """What a connection leads to."""

    is_tls: bool
    host: str
    port: int

    @classmethod
    def of_socket(cls, path: str) -> "Origin":
        """A Unix socket."""
        return cls(False, path, _UNIX)

    @property
    def socket_path(self) -> str | None:
        return self.host if self.port == _UNIX else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Address:
    origin: Origin
    authority: str  # as the Host header names it
    target: str
    credentials: str | None  # those in the address, as an Authorization header

    @classmethod
    def of(cls, url: str) -> "Address":
        """Raises: ValueError."""
        if is_unix_url(url):
            path, target = _unix_parts(url)
            origin = Origin.of_socket(path)
            return cls(origin=origin, authority=_UNIX_HOST, target=_quoted(urlsplit(_HERE + target)), credentials=None)
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("the address has no host, or is not one of http or https")
        host = parts.hostname.replace("%25", "%")  # before the zone of an IPv6 address
        host = host if host.isascii() else host.encode("idna").decode()
        if not host.isprintable() or " " in host:
            raise ValueError("the address has a host that cannot be one")
        port = parts.port if parts.port is not None else _PORTS[parts.scheme]
        return cls(
            origin=Origin(parts.scheme == "https", host, port),
            authority=authority(host, port if port != _PORTS[parts.scheme] else None),
            target=_quoted(parts),
            credentials=basic_credentials(parts),
        )

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


def is_unix_url(url: str) -> bool:
    return url[: len(_UNIX_SCHEME)].lower() == _UNIX_SCHEME


def join(url: str, location: str) -> str:
    """Where a server at `url` means by `location`, which may be relative. Raises: ValueError."""
    if not is_unix_url(url):
        return urljoin(url, location)
    path, target = _unix_parts(url)
    joined = urljoin(_HERE + target, location)
    return f"{_UNIX_SCHEME}{path}:{joined.removeprefix(_HERE)}" if joined.startswith(f"{_HERE}/") else joined


def place_of(url: str) -> str:
    """Host and port, or the path of a socket, for messages: without a password, or a token in the path."""
    return _unix_parts(url)[0] if is_unix_url(url) else urlsplit(url).netloc.rpartition("@")[2]


def _unix_parts(url: str) -> tuple[str, str]:
    """The path of the socket, and what is asked for there."""
    rest = url[len(_UNIX_SCHEME) :]
    path, _, target = rest.partition(":/")
    target = f"/{target}"
    if not path.startswith("/") or len(path) < 2 or "\0" in path:
        raise ValueError("expected unix:///PATH/OF/SOCKET:/PATH, as in unix:///run/tracker.sock:/mcp")
    if len(path.encode()) > LONGEST_SOCKET_PATH:
        raise ValueError(f"the path of a socket may have at most {LONGEST_SOCKET_PATH} bytes")
    return path, target


def _quoted(parts: SplitResult) -> str:
    target = quote(parts.path or "/", safe=_SENT_AS_THEY_ARE)
    return f"{target}?{quote(parts.query, safe=_SENT_AS_THEY_ARE)}" if parts.query else target


def authority(host: str, port: int | None) -> str:
    name = f"[{host.partition('%')[0]}]" if ":" in host else host  # a zone is this machine's own affair
    return name if port is None else f"{name}:{port}"


def basic_credentials(parts: SplitResult) -> str | None:
    if parts.username is None and parts.password is None:
        return None
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"
