"""Where a request goes, taken apart once."""

from base64 import b64encode
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import SplitResult, quote, unquote, urlsplit

_PORTS = {"http": 80, "https": 443}
_UNIX = -1  # where others have a port
_SENT_AS_THEY_ARE = "!$%&'()*+,/:;=?@[]~"  # "%" too: an address that was quoted is not quoted twice


class Origin(NamedTuple):
    """What a connection leads to."""

    is_tls: bool
    host: str
    port: int

    @classmethod
    def of_socket(cls, path: str) -> "Origin":
        """A Unix socket. No URL of a server leads there."""
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
        parts = urlsplit(url)
        if parts.scheme not in _PORTS or not parts.hostname:
            raise ValueError("the address has no host, or is not one of http or https")
        host = parts.hostname.replace("%25", "%")  # before the zone of an IPv6 address
        host = host if host.isascii() else host.encode("idna").decode()
        if not host.isprintable() or " " in host:
            raise ValueError("the address has a host that cannot be one")
        port = parts.port if parts.port is not None else _PORTS[parts.scheme]
        target = quote(parts.path or "/", safe=_SENT_AS_THEY_ARE)
        if parts.query:
            target += "?" + quote(parts.query, safe=_SENT_AS_THEY_ARE)
        return cls(
            origin=Origin(parts.scheme == "https", host, port),
            authority=_authority(host, port if port != _PORTS[parts.scheme] else None),
            target=target,
            credentials=_credentials(parts),
        )

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]


def _authority(host: str, port: int | None) -> str:
    name = f"[{host.partition('%')[0]}]" if ":" in host else host  # a zone is this machine's own affair
    return name if port is None else f"{name}:{port}"


def _credentials(parts: SplitResult) -> str | None:
    if parts.username is None and parts.password is None:
        return None
    pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
    return f"Basic {b64encode(pair.encode()).decode()}"
