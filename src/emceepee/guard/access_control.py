"""The checks that every HTTP request must pass before any other code handles it."""

import hmac
import ipaddress
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

from emceepee.guard.caller_identity import LOCAL, CallerIdentity, Rejection
from emceepee.guard.login_throttle import LoginThrottle
from emceepee.guard.logins import Logins, cookies
from emceepee.guard.proxy_headers import is_forwarded

LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
LAST_PORT = 65_535
_NETLOC = re.compile(r"(?P<host>[A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::(?P<port>[0-9]{1,5}))?").fullmatch


class TokenCheck(Protocol):
    """Verifies tokens that the gate itself does not know, such as OAuth access tokens."""

    async def principal_of(self, token: str) -> str | Rejection: ...

    def challenge(self) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessRules:
    """The operator's rules for callers."""

    tokens: Mapping[str, str] = field(default_factory=dict, repr=False)  # maps tokens to principals
    hosts: frozenset[str] = frozenset()  # additional names accepted in the Host header
    origins: frozenset[str] = frozenset()  # origins of foreign pages that may call
    any_host: bool = False  # accept any Host; for servers that require authentication
    any_address: bool = False  # accept any IP address as Host, because DNS rebinding needs a name
    only_logins: bool = False  # require a login even from programs on this machine


class AccessControl:
    """Authenticates requests. The result is an identity, or a rejection to send."""

    def __init__(
        self,
        rules: AccessRules,
        check: TokenCheck | None = None,
        logins: Logins | None = None,
        throttle: LoginThrottle | None = None,
    ) -> None:
        self._rules, self._check, self._logins, self._throttle = rules, check, logins, throttle
        self._tokens = [(token.encode(), principal) for token, principal in rules.tokens.items()]

    @property
    def takes_tokens(self) -> bool:
        return bool(self._tokens) or self._check is not None

    def check_host_and_origin(self, headers: Mapping[bytes, bytes]) -> Rejection | None:
        """Reject a foreign Host or Origin (DNS rebinding, CSRF). Return None if both are allowed."""
        host = headers.get(b"host", b"").decode("latin-1")
        if not self._is_own_host(host):
            return Rejection(421, f"This server does not accept the host {host[:100]!r}; start it with --allow-host.")
        origin = headers.get(b"origin")
        if origin is not None and not self._is_allowed_origin(origin.decode("latin-1"), host):
            return Rejection(403, "Pages of this origin are not allowed; start the server with --allow-origin.")
        return None

    async def admit(
        self, headers: Mapping[bytes, bytes], peer: str | None, *, method: str
    ) -> CallerIdentity | Rejection:
        """Identify the caller of /mcp by a token or a login. If neither is required, the default is `LOCAL`."""
        is_page = b"origin" in headers
        is_remote = (
            not _is_loopback(peer) or _came_through_a_proxy(headers) or (is_page and self._is_foreign_page(headers))
        )
        principal = await self._authenticate(headers, peer, method) if _has_credentials(headers) else None
        if isinstance(principal, Rejection):
            return principal
        if principal is not None:
            return CallerIdentity(principal, is_proven=True, is_remote=is_remote, is_page=is_page)
        if self.takes_tokens:
            return self._challenge("Send the token in the header Authorization: Bearer …")
        if self._rules.only_logins:
            return Rejection(401, "Log in with the link that emceepee logged.")
        return CallerIdentity(LOCAL, is_remote=is_remote, is_page=is_page)

    async def admit_to_console(
        self, headers: Mapping[bytes, bytes], peer: str | None, *, method: str
    ) -> str | Rejection:
        """Return the principal. The console always requires a login or a token."""
        principal = await self._authenticate(headers, peer, method)
        return self._challenge("Log in at /console/login.") if principal is None else principal

    def logged_in(self, headers: Mapping[bytes, bytes], *, method: str) -> str | None:
        """Return the principal of the session cookie, or None. The request must come from our own page."""
        if self._logins is None or not is_same_origin(headers, method=method):
            return None
        principals = (self._logins.principal_of(secret) for secret in cookies(headers))
        return next((principal for principal in principals if principal is not None), None)

    async def find_login(self, headers: Mapping[bytes, bytes], *, method: str) -> str | None:
        """Like `logged_in`, but also find logins at other processes by reading the store again if necessary."""
        principal = self.logged_in(headers, method=method)
        if principal is None and self._logins is not None and cookies(headers):
            await self._logins.refresh()
            principal = self.logged_in(headers, method=method)
        return principal

    async def check_token(self, token: bytes, peer: str | None) -> str | Rejection:
        """Return the principal of a token. The delay of the answer grows with the number of wrong tokens."""
        verdict: str | Rejection | None = self._find_token(token)
        if verdict is None and self._check is not None:
            verdict = await self._check.principal_of(token.decode("latin-1"))
        elif verdict is None:
            verdict = self._challenge("The token is unknown.")
        if self._throttle is not None:
            if not isinstance(verdict, Rejection):
                await self._throttle.delay_success(peer, token)
            elif verdict.status == 401:
                await self._throttle.delay_failure(peer)
        return verdict

    async def redeem(self, code: str, peer: str | None) -> str | None:
        """Redeem the one-time code of a login link. Return its principal, or None if the code is invalid."""
        principal = None if self._logins is None else await self._logins.codes.redeem(code)
        if principal is None and self._throttle is not None:
            await self._throttle.delay_failure(peer)
        return principal

    async def _authenticate(
        self, headers: Mapping[bytes, bytes], peer: str | None, method: str
    ) -> str | Rejection | None:
        """Authenticate by the token, else by the cookie. Return None without a token or a valid cookie."""
        if self.takes_tokens and b"authorization" in headers:
            scheme, _, token = headers[b"authorization"].partition(b" ")
            if scheme.lower() == b"bearer" and token.strip():
                return await self.check_token(token.strip(), peer)
        return await self.find_login(headers, method=method) if b"cookie" in headers else None

    def _find_token(self, given: bytes) -> str | None:
        """Return the principal of a configured token. Constant-time comparison prevents timing attacks."""
        found = None
        for token, principal in self._tokens:
            if hmac.compare_digest(token, given):
                found = principal
        return found

    def _challenge(self, message: str) -> Rejection:
        if not self.takes_tokens:
            return Rejection(401, message)
        words = self._check.challenge() if self._check else b"Bearer"
        return Rejection(401, message, ((b"www-authenticate", words),))

    def _is_own_host(self, host: str) -> bool:
        rules, found = self._rules, _host_and_port(host)
        if found is None:
            return False
        name = found[0]
        known = name in LOOPBACK_NAMES or name in rules.hosts or host in rules.hosts
        return known or rules.any_host or (rules.any_address and _is_address(name))

    def _is_allowed_origin(self, origin: str, host: str) -> bool:
        if origin in self._rules.origins:
            return True
        scheme, separator, netloc = origin.partition("://")
        if scheme not in ("http", "https") or not separator:
            return False
        place = _host_and_port(netloc)
        return netloc == host or (place is not None and place[0] in LOOPBACK_NAMES)

    def _is_foreign_page(self, headers: Mapping[bytes, bytes]) -> bool:
        """Return whether another origin serves the page. Such a page may call, but counts as a remote caller."""
        origin, host = headers[b"origin"].decode("latin-1"), headers.get(b"host", b"").decode("latin-1")
        netloc = origin.partition("://")[2]
        if origin in self._rules.origins or netloc == host:
            return False
        page, here = _host_and_port(netloc), _host_and_port(host)
        # Loopback has several names, but each port belongs to one server.
        return page is None or here is None or page[1] != here[1] or not {page[0], here[0]} <= LOOPBACK_NAMES


def _has_credentials(headers: Mapping[bytes, bytes]) -> bool:
    return b"authorization" in headers or b"cookie" in headers


def is_same_origin(headers: Mapping[bytes, bytes], *, method: str) -> bool:
    """Return whether the request comes from a page of exactly this origin, or from a person who opened the URL.

    Browsers send cookies with requests from pages at any port of this host, so a cookie alone does not prove the
    origin (CSRF).
    """
    site = headers.get(b"sec-fetch-site")
    if site == b"same-origin":
        return True
    if site is not None:
        is_top_level = headers.get(b"sec-fetch-mode") == b"navigate" and headers.get(b"sec-fetch-dest") == b"document"
        return method == "GET" and is_top_level
    origin = headers.get(b"origin")
    if origin is None:  # no browser, or one without fetch metadata; a GET has no side effects
        return method in ("GET", "HEAD")
    host = headers.get(b"host", b"")
    return bool(host) and origin in (b"http://" + host, b"https://" + host)


@lru_cache(maxsize=256)  # callers send the same few hosts in every request
def _host_and_port(netloc: str) -> tuple[str, str] | None:
    """Split into host and port. Return None for any other text, because programs may parse it differently."""
    found = _NETLOC(netloc)
    if found is None or int(found["port"] or 0) > LAST_PORT:
        return None
    return found["host"].strip("[]").lower(), found["port"] or ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _came_through_a_proxy(headers: Mapping[bytes, bytes]) -> bool:
    """Return whether the request may come from elsewhere through a proxy, even if its peer address is local."""
    place = _host_and_port(headers.get(b"host", b"").decode("latin-1"))
    return place is None or place[0] not in LOOPBACK_NAMES or is_forwarded(tuple(headers))


@lru_cache(maxsize=256)
def _is_loopback(peer: str | None) -> bool:
    if peer is None:  # a Unix socket: only local processes can open it
        return True
    try:
        return ipaddress.ip_address(peer).is_loopback
    except ValueError:
        return False
