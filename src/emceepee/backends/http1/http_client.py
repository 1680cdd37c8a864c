"""The HTTP client of one link: the server's address, the headers of every request, and the server's cookies."""

import re
from collections.abc import Mapping
from typing import Protocol

from emceepee.backends.http1.cookies import CookieJar
from emceepee.backends.http1.http_failures import NoResponse, NotConnected
from emceepee.backends.http1.origin import Address, join
from emceepee.backends.http1.pool import ConnectionPool
from emceepee.backends.http1.response import HttpResponse
from emceepee.backends.http1.tls_contexts import TlsSettings
from emceepee.backends.http1.tunnel import LOGIN_WANTED, refusal_words

# Configured headers must not change the framing of a request or the lifetime of its connection (request smuggling).
HOP_BY_HOP = frozenset(
    {
        *("connection", "content-length", "expect", "http2-settings", "keep-alive", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade"),
    }
)
REFUSALS = frozenset({401, 403})
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+").fullmatch
_BREAKS_OUT = re.compile(r"[\r\n\0]").search


class RequestAttempts:
    """The attempts so far to send one request."""

    __slots__ = ("count", "credential")

    def __init__(self) -> None:
        self.count = 0
        self.credential: object = None  # of the last attempt, set by RequestAccess


class CredentialSlot(Protocol):
    """The current credential of a server."""

    @property
    def current(self) -> object | None:
        """The credential, or None if requests need none. A plain attribute: every request reads it."""
        ...


class RequestAccess(Protocol):
    """Supplies credentials for requests, and reacts to rejections."""

    @property
    def slot(self) -> CredentialSlot:
        """The slot of the server's credential. It stays the same object."""
        ...

    async def headers(
        self, method: str, url: str, headers: Mapping[str, str] | None, attempts: RequestAttempts
    ) -> Mapping[str, str]:
        """Return the headers of a request with the credentials added."""
        ...

    async def overcome(self, response: HttpResponse, method: str, attempts: RequestAttempts) -> bool:
        """Return whether to send a rejected request again with new credentials. The rejected request had no effect."""
        ...


class HttpClient:
    """Sends requests. Links share the connections of the pool, but each link has its own headers and cookies."""

    def __init__(
        self,
        pool: ConnectionPool,
        url: str,
        headers: Mapping[str, str],
        *,
        owner: str = "",
        is_public: bool = False,
        tls: TlsSettings | None = None,
        access: RequestAccess | None = None,
    ) -> None:
        """Create a client. Only links of the same `owner` share connections. `is_public`: reject private addresses.

        `tls` overrides the default TLS settings.

        Raises:
            ValueError: an address or header that HTTP cannot carry.
        """
        self.url = url
        self._shared, self._owner, self._is_public, self._tls = pool, owner, is_public, tls
        self._access = access
        self._address = Address.of(url)
        self._connections = pool.of(self._address.origin, owner=owner, is_public=is_public, tls=tls)
        self.forwarding_proxy = proxy = self._connections.forwarding_proxy
        self._jar = CookieJar(self._address.origin, pool.clock)
        self._fields = {"host": self._address.authority, "accept-encoding": "identity"}
        if self._address.credentials is not None:
            self._fields["authorization"] = self._address.credentials
        self._fields |= {name.lower(): value for name, value in headers.items() if name.lower() not in HOP_BY_HOP}
        if proxy is not None and proxy.credentials is not None:
            self._fields["proxy-authorization"] = proxy.credentials
        encode_headers(self._fields)
        self._heads: dict[str, bytes] = {}  # by method: the request line and the constant headers

    def at(self, url: str) -> "HttpClient":
        """Return a client for another URL of the same origin, which may be relative. Both clients share their cookies.

        Raises:
            ValueError: it has another origin, and the headers may contain a credential; or it is not a valid URL.
        """
        url = join(self.url, url)
        address = Address.of(url)
        if address.origin != self._address.origin:
            raise ValueError("the address is of another origin")
        moved = HttpClient(
            self._shared,
            url,
            self._fields,
            owner=self._owner,
            is_public=self._is_public,
            tls=self._tls,
            access=self._access,
        )
        moved._jar = self._jar
        return moved

    def set_header(self, name: str, value: str | None) -> None:
        """Set a header of all following requests, or remove it if the value is None. Raises: ValueError."""
        if value is None:
            self._fields.pop(name, None)
        else:
            encode_headers({name: value})
            self._fields[name] = value
        self._heads.clear()

    async def connect(self) -> None:
        """Open a connection for the next request. Raises: NotConnected."""
        self._connections.put_back(await self._connections.connect())

    async def request(
        self, method: str, body: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> HttpResponse:
        """Send a request, and return when the head of the response arrives. `headers` apply to this request only.

        Raises:
            NotConnected: nothing was sent.
            HttpFailure: anything else went wrong.
            ValueError: a header that HTTP cannot carry.
            Any error that `access` raises when it denies access.
        """
        access, attempts = self._access, None
        while True:
            own = headers
            if access is not None and (access.slot.current is not None or attempts is not None):
                attempts = attempts or RequestAttempts()
                own = await access.headers(method, self.url, headers, attempts)
            response = await self._send(self._message(method, body, own), is_repeatable=method != "POST")
            if response.status == LOGIN_WANTED and self.forwarding_proxy is not None:
                response.discard()
                raise NotConnected(refusal_words(self.forwarding_proxy, LOGIN_WANTED, "", self._address.authority))
            if response.cookies:
                self._jar.take(response.cookies, self._address.path)
            if access is None or response.status not in REFUSALS:
                return response
            attempts = attempts or RequestAttempts()
            attempts.count += 1
            if not await access.overcome(response, method, attempts):
                return response

    def _message(self, method: str, body: bytes | None, headers: Mapping[str, str] | None) -> bytes:
        if self._jar:
            headers = self._with_cookies(headers or {})
        head = self._heads.get(method) or self._head(method)
        if headers:
            head = self._head_with(head, headers)
        return head + b"\r\n" if body is None else b"%bcontent-length: %d\r\n\r\n%b" % (head, len(body), body)

    async def _send(self, message: bytes, *, is_repeatable: bool) -> HttpResponse:
        while True:
            connection = self._connections.take()
            was_idle = connection is not None
            response = (connection or await self._connections.connect()).send(message)
            try:
                await response.wait_for_head()
            except NoResponse:
                # Race: the server probably closed the idle connection before the request arrived. This is not certain,
                # so only idempotent requests are sent again.
                if not (was_idle and is_repeatable):
                    raise
            else:
                return response

    def _head(self, method: str) -> bytes:
        # A forwarding proxy needs the absolute URL in the request line to find the host.
        whole = f"http://{self._address.authority}" if self.forwarding_proxy is not None else ""
        line = f"{method} {whole}{self._address.target} HTTP/1.1\r\n".encode("ascii")
        head = self._heads[method] = line + encode_headers(self._fields)
        return head

    def _head_with(self, head: bytes, headers: Mapping[str, str]) -> bytes:
        if self._fields.keys().isdisjoint(headers):
            return head + encode_headers(headers)
        line, _, _ = head.partition(b"\r\n")
        return line + b"\r\n" + encode_headers(self._fields | dict(headers))

    def _with_cookies(self, headers: Mapping[str, str]) -> dict[str, str]:
        configured = headers.get("cookie") or self._fields.get("cookie")
        stored = self._jar.header(self._address.path)
        both = "; ".join(part for part in (configured, stored) if part)
        return {**headers, "cookie": both} if both else dict(headers)


def encode_headers(fields: Mapping[str, str]) -> bytes:
    """Return the encoded lines of a header block.

    Raises:
        ValueError: a name or value that HTTP cannot carry; the message names the field and never shows the value.
    """
    lines = []
    for name, value in fields.items():
        if not _NAME(name):
            raise ValueError(f"{name[:100]!r} cannot be the name of a header")
        if _BREAKS_OUT(value):
            raise ValueError(f"the header {name} has a line break or a null byte in it")
        lines.append(f"{name}: {value}\r\n")
    try:
        return "".join(lines).encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError(f"the header {_not_latin(fields)} has a character that HTTP cannot carry") from None


def _not_latin(fields: Mapping[str, str]) -> str:
    return next(name for name, value in fields.items() if any(ord(character) > 0xFF for character in value))
