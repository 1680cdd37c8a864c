"""Opens a connection to one of a server's addresses or to a Unix socket, directly or through a proxy.

directly               socket ─▶ TLS ─▶ ClientConnection
https through a proxy  socket to the proxy ─▶ CONNECT name:port ─▶ TLS ─▶ ClientConnection
http through a proxy   socket to the proxy ─▶ ClientConnection, whose requests contain the absolute URL
only public addresses  this machine resolves and checks the name, and CONNECT gets the address, even for http
"""

import asyncio
import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socket import socket
from typing import NamedTuple, TypeVar

from emceepee.backends.http1.client_connection import ClientConnection
from emceepee.backends.http1.connect_errors import describe
from emceepee.backends.http1.happy_eyeballs import open_socket, open_unix_socket
from emceepee.backends.http1.http_failures import NotConnected
from emceepee.backends.http1.origin import HttpOrigin
from emceepee.backends.http1.proxies import Proxy, ProxyRules
from emceepee.backends.http1.public_addresses import is_public
from emceepee.backends.http1.resolver import Resolver, SocketAddress
from emceepee.backends.http1.tls_contexts import BadTlsFile, TlsContexts, TlsSettings
from emceepee.backends.http1.tunnel import TunnelRefused, TunnelRequest

PRIVATE = "its address is in a private network, which is not allowed for servers that callers from other machines add"
MOST_TRIED = 4  # maximum number of a server's addresses that are tried through a proxy
FAULT = 500  # with this proxy status or a higher one, another address of the server may work

P = TypeVar("P", bound=asyncio.Protocol)


class PoolKey(NamedTuple):
    """Requests with the same key share connections. `is_public`: connect to public addresses only."""

    origin: HttpOrigin
    owner: str = ""
    is_public: bool = False
    tls: TlsSettings | None = None

    @property
    def server_name(self) -> str:
        """The name that the certificate must contain. An IPv6 zone is local to this machine, so it is removed."""
        return (self.tls and self.tls.server_name) or self.origin.host.partition("%")[0]


class Connector:
    """Opens connections for the pool, which owns them. `tls` is for servers without their own TLS settings."""

    def __init__(
        self, resolver: Resolver, tls: ssl.SSLContext | None, contexts: TlsContexts, proxies: ProxyRules
    ) -> None:
        self.resolver, self._tls, self._contexts, self._proxies = resolver, tls, contexts, proxies

    def proxy_for(self, key: PoolKey) -> Proxy | None:
        return self._proxies.proxy_for(key.origin)

    def forwarding_proxy(self, key: PoolKey) -> Proxy | None:
        """Return the proxy that forwards plain HTTP requests, or None.

        With `is_public`, no proxy forwards requests, because the proxy would resolve the name to an unchecked address.
        """
        return None if key.origin.is_tls or key.is_public else self.proxy_for(key)

    async def open(self, key: PoolKey, make: Callable[[], ClientConnection]) -> ClientConnection:
        """Raises: NotConnected, OSError, UnicodeError."""
        tls = self._context(key.tls) if key.origin.is_tls else None
        proxy = self.proxy_for(key)
        if proxy is None:
            return await _start(make, await self._open_socket(key), tls, key.server_name)
        if self.forwarding_proxy(key) is not None:
            return await self._reach(proxy, make)
        return await _enter(await self._open_tunnel(proxy, key), make, tls, key.server_name)

    def _context(self, settings: TlsSettings | None) -> ssl.SSLContext:
        if self._tls is None:
            raise NotConnected("it wants TLS, for which nothing is set up here")
        try:
            return self._tls if settings is None else self._contexts.of(settings)
        except BadTlsFile as error:
            raise NotConnected(f"tls.{error.setting} of this server cannot be used: {error}") from error

    # Directly.

    async def _open_socket(self, key: PoolKey) -> socket:
        _, host, port = key.origin
        if (path := key.origin.socket_path) is not None:
            if key.is_public:
                raise NotConnected(PRIVATE)
            return open_unix_socket(path)
        return await self._connect(host, port, await self._addresses(key))

    async def _connect(self, host: str, port: int, addresses: list[SocketAddress]) -> socket:
        try:
            return await open_socket(addresses)
        except BaseException:  # includes cancellation by the connect timeout, which ends attempts to silent addresses
            self.resolver.forget(host, port)
            raise

    async def _addresses(self, key: PoolKey) -> list[SocketAddress]:
        addresses = await self.resolver.addresses(key.origin.host, key.origin.port)
        if key.is_public:
            # Checked at each connection, because a name can change its addresses (DNS rebinding).
            addresses = [address for address in addresses if is_public(str(address[1][0]))]
            if not addresses:
                raise NotConnected(PRIVATE)
        return addresses

    # Through a proxy.

    async def _reach(self, proxy: Proxy, make: Callable[[], P]) -> P:
        is_tls, host, port = proxy.origin
        tls = self._context(None) if is_tls else None
        with _blaming(proxy):
            addresses = await self.resolver.addresses(host, port)
            return await _start(make, await self._connect(host, port, addresses), tls, host)

    async def _open_tunnel(self, proxy: Proxy, key: PoolKey) -> asyncio.Transport:
        _, host, port = key.origin
        hosts = [str(address[0]) for _, address in await self._addresses(key)] if key.is_public else [host]
        refusal: TunnelRefused | None = None
        for each in hosts[:MOST_TRIED]:
            try:
                return await self._ask_for_tunnel(proxy, each, port)
            except TunnelRefused as error:
                if error.status < FAULT:
                    raise
                refusal = refusal or error
        assert refusal is not None  # there is at least one host
        raise refusal

    async def _ask_for_tunnel(self, proxy: Proxy, host: str, port: int) -> asyncio.Transport:
        loop = asyncio.get_running_loop()
        request = await self._reach(proxy, lambda: TunnelRequest(loop))
        try:
            return await request.ask(proxy, host, port)
        except BaseException:
            request.abort()
            raise


@contextmanager
def _blaming(proxy: Proxy) -> Iterator[None]:
    try:
        yield
    except (OSError, UnicodeError) as error:
        words = f"the proxy {proxy}, which {proxy.variable} names, cannot be reached"
        raise NotConnected(f"{words}: {describe(error)}") from error


async def _start(make: Callable[[], P], sock: socket, tls: ssl.SSLContext | None, name: str) -> P:
    loop = asyncio.get_running_loop()
    try:
        _, protocol = await loop.create_connection(
            make, sock=sock, ssl=tls, server_hostname=name if tls is not None else None
        )
    except BaseException:
        sock.close()
        raise
    return protocol


async def _enter(
    transport: asyncio.Transport, make: Callable[[], ClientConnection], tls: ssl.SSLContext | None, name: str
) -> ClientConnection:
    """Start a connection to the server at the end of a tunnel."""
    connection = make()
    if tls is None:
        transport.set_protocol(connection)
        connection.connection_made(transport)
        return connection
    try:
        inner = await asyncio.get_running_loop().start_tls(transport, connection, tls, server_hostname=name)
    except BaseException:
        transport.abort()
        raise
    if inner is None:
        raise NotConnected("the connection was closed at once")
    connection.connection_made(inner)
    return connection
