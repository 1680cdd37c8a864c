"""The checks that every HTTP request passes before anything else looks at it."""

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol
from urllib.parse import urlsplit

from emceepee.guard.visitor import LOCAL, TurnedAway, Visitor

PROXY_HEADERS = (b"forwarded", b"x-forwarded-for", b"x-real-ip", b"via")
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})


class TokenCheck(Protocol):
    """Another way to prove who one is, such as a login elsewhere."""

    async def principal_of(self, token: str) -> str | TurnedAway: ...

    def challenge(self) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRules:
    """What the operator allows."""

    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)  # principal by token
    hosts: frozenset[str] = frozenset()  # further names under which we may be called
    origins: frozenset[str] = frozenset()  # pages elsewhere that may call us
    any_host: bool = False  # for those who are proven by a token anyway
    any_address: bool = False  # names can be made to point at us by any page's owner, addresses cannot


class Gate:
    """Decides without acting: a visitor, or a reason to turn away."""

    def __init__(self, rules: GateRules, login: TokenCheck | None = None) -> None:
        self._rules, self._login = rules, login
        self._tokens = [(token.encode(), principal) for token, principal in rules.tokens.items()]

    @property
    def asks_for_proof(self) -> bool:
        return bool(self._tokens) or self._login is not None

    def knows_place(self, headers: Mapping[bytes, bytes]) -> TurnedAway | None:
        """Whether the request means us (Host) and comes from a page that may (Origin): no page can be tricked in."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_our_name(host):
            return TurnedAway(
                421, f"This server does not answer to the host {host[:100]!r}; start it with --allow-host."
            )
        origin = headers.get(b"origin")
        if origin is not None and not self._is_our_page(origin.decode("latin-1"), host):
            return TurnedAway(403, "Pages of this origin may not call; start the server with --allow-origin.")
        return None

    async def admit(self, headers: Mapping[bytes, bytes], peer: str | None) -> Visitor | TurnedAway:
        """Who it is."""
        is_remote = not _is_loopback(peer) or _came_through_a_proxy(headers)
        if not self.asks_for_proof:
            return Visitor(LOCAL, is_remote=is_remote)
        scheme, _, token = headers.get(b"authorization", b"").partition(b" ")
        if scheme.lower() != b"bearer" or not token.strip():
            return self._challenge("Send the token in the header Authorization: Bearer …")
        principal = self._holder(token.strip())
        if principal is None and self._login is not None:
            verdict = await self._login.principal_of(token.strip().decode("latin-1"))
            if isinstance(verdict, TurnedAway):
                return verdict
            principal = verdict
        if principal is None:
            return self._challenge("The token is not known here.")
        return Visitor(principal, is_proven=True, is_remote=is_remote)

    def _holder(self, given: bytes) -> str | None:
        """Compares with every token in constant time, so that timing tells nothing."""
        found = None
        for token, principal in self._tokens:
            if hmac.compare_digest(token, given):
                found = principal
        return found

    def _challenge(self, message: str) -> TurnedAway:
        words = self._login.challenge() if self._login else b"Bearer"
        return TurnedAway(401, message, ((b"www-authenticate", words),))

    def _is_our_name(self, host: str) -> bool:
        rules, name = self._rules, _host_name(f"//{host}")
        if name is None:
            return False
        known = name in LOOPBACK_NAMES or name in rules.hosts or host in rules.hosts
        return known or rules.any_host or (rules.any_address and _is_address(name))

    def _is_our_page(self, origin: str, host: str) -> bool:
        if origin in self._rules.origins:
            return True
        scheme, separator, netloc = origin.partition("://")
        if scheme not in ("http", "https") or not separator:
            return False
        return netloc == host or _host_name(f"//{netloc}") in LOOPBACK_NAMES


def _host_name(address: str) -> str | None:
    """None if it is no host at all."""
    try:
        return urlsplit(address).hostname
    except ValueError:
        return None


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _came_through_a_proxy(headers: Mapping[bytes, bytes]) -> bool:
    """Who comes through a proxy on this machine may come from anywhere."""
    name = _host_name("//" + headers.get(b"host", b"").decode("latin-1"))
    return name not in LOOPBACK_NAMES or any(header in headers for header in PROXY_HEADERS)


def _is_loopback(peer: str | None) -> bool:
    if peer is None:  # a socket file: whoever can open it is here
        return True
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
