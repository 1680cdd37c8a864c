"""Selects the proxy of a request by the environment variables HTTP_PROXY, HTTPS_PROXY, and NO_PROXY."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from socket import inet_aton
from urllib.parse import urlsplit

from emceepee.backends.http1.origin import HttpOrigin, authority, basic_credentials

HTTP_VARIABLE, HTTPS_VARIABLE, BYPASS_VARIABLE = "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"
EXPECTED = "expected http://[USER:PASSWORD@]HOST[:PORT], or https:// for a proxy that speaks TLS itself"
_PORTS = {"http": 80, "https": 443}
_PORT = re.compile(r"(?P<host>[^:]+|\[.*\]):(?P<port>\d+)").fullmatch
_UNSPECIFIED = frozenset({"0.0.0.0", "::"})  # these addresses also lead to this machine


class BadProxy(ValueError):
    """The text names the environment variable, but omits its value, which may contain a password."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A proxy and its credentials. `variable` is the environment variable that names it."""

    origin: HttpOrigin
    variable: str
    credentials: str | None = field(default=None, repr=False)  # as a Proxy-Authorization header

    def __str__(self) -> str:
        """Return the host and port, for messages and logs."""
        return authority(self.origin.host, self.origin.port)

    @classmethod
    def of(cls, text: str, variable: str) -> "Proxy":
        """Raises: BadProxy."""
        try:
            parts = urlsplit(text if "://" in text else f"http://{text}")
            host, port = parts.hostname or "", parts.port
            host = host if host.isascii() else host.encode("idna").decode()
        except ValueError:
            raise BadProxy(f"{variable}: {EXPECTED}") from None
        if parts.scheme not in _PORTS:
            raise BadProxy(f"{variable}: {EXPECTED}; proxies of the kind {parts.scheme}:// are not supported")
        if parts.path not in ("", "/") or parts.query or parts.fragment:
            raise BadProxy(f"{variable}: {EXPECTED}, and nothing more; in a password / ? # @ are %2F %3F %23 %40")
        if not host or not host.isprintable() or " " in host:
            raise BadProxy(f"{variable}: {EXPECTED}")
        origin = HttpOrigin(parts.scheme == "https", host, port or _PORTS[parts.scheme])
        return cls(origin=origin, variable=variable, credentials=basic_credentials(parts))


@dataclass(frozen=True, slots=True, kw_only=True)
class ProxyRules:
    """Proxies by the scheme of the server's URL. The proxy's own scheme may differ."""

    http: Proxy | None = None
    https: Proxy | None = None
    bypass: tuple[str, ...] = ()

    @classmethod
    def of(cls, environment: Mapping[str, str]) -> "ProxyRules":
        """Read the environment variables. A lower-case name takes precedence over upper case. Raises: BadProxy."""
        return cls(
            http=_proxy(environment, HTTP_VARIABLE),
            https=_proxy(environment, HTTPS_VARIABLE),
            bypass=tuple(re.split(r"[\s,]+", _value(environment, BYPASS_VARIABLE).strip().lower())),
        )

    def proxy_for(self, origin: HttpOrigin) -> Proxy | None:
        """Return the proxy for an origin, or None for a direct connection. Hosts on this machine need no proxy."""
        proxy = self.https if origin.is_tls else self.http
        if proxy is None or origin.socket_path is not None or _is_here(origin.host):
            return None
        host = origin.host.rstrip(".")
        return None if any(_bypasses(entry, host, origin.port) for entry in self.bypass) else proxy


DIRECT = ProxyRules()


def _proxy(environment: Mapping[str, str], variable: str) -> Proxy | None:
    value = _value(environment, variable).strip()
    return Proxy.of(value, variable) if value else None


def _value(environment: Mapping[str, str], variable: str) -> str:
    return environment.get(variable.lower(), environment.get(variable, ""))


def _is_here(host: str) -> bool:
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost") or name in _UNSPECIFIED or "%" in name:
        return True  # zones are meaningful on this machine only
    address = _address(name)
    return address is not None and address.is_loopback


def _bypasses(entry: str, host: str, port: int) -> bool:
    if entry == "*":
        return True
    if found := _PORT(entry):
        if int(found["port"]) != port:
            return False
        entry = found["host"]
    entry = entry.strip("[]").removeprefix("*").strip(".")
    address = _address(host)
    if address is not None:
        network = _network(entry)
        return network is not None and address in network
    return bool(entry) and (host == entry or host.endswith(f".{entry}"))


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address, or None for a name. All forms that the system accepts count, such as 127.1 for loopback."""
    try:
        found = ip_address(host)
    except ValueError:
        try:
            return IPv4Address(inet_aton(host))
        except (OSError, ValueError):
            return None
    return (found.ipv4_mapped or found) if isinstance(found, IPv6Address) else found


def _network(entry: str) -> IPv4Network | IPv6Network | None:
    try:
        return ip_network(entry, strict=False)
    except ValueError:
        return None
