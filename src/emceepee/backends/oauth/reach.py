"""Which addresses the logins to one server may connect to. Every exchange of every login is checked, just before it.

A server names its authorization server, and that one names its endpoints, so neither may lead to places that only this
machine can reach. The server's own origin may always be asked. Of other origins:

a server from the operator or a local caller
    its configured issuer and identity provider may be anywhere; otherwise a server at a public address leads to public
    addresses only, and one in a private network or on this machine leads anywhere
a guarded server: one that a remote caller added, or that was admitted by --allow-url
    an address that --allow-url lists, or a public address with TLS
"""

from collections.abc import Callable
from dataclasses import dataclass

from emceepee.backends.http1.address import Address, Origin
from emceepee.backends.http1.connector import PRIVATE, Connector, PoolKey
from emceepee.backends.http1.errors import HttpFailure, NotConnected
from emceepee.backends.http1.public_addresses import is_public

NOT_WEB = "a login uses http and https addresses only"
NOT_LISTED = "a login to this server uses only its own origin, addresses of --allow-url, and public addresses with TLS"
LEADS_INSIDE = (
    "its address is in a private network, and the server's is public. If that is right, set issuer in the server's"
    " oauth settings"
)


def list_nothing(url: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginReach:
    """`is_listed` asks the operator's list; `trusted` are addresses from an unguarded configuration."""

    server_url: str = ""
    is_public: bool = False
    is_guarded: bool = False
    issuer: str | None = None
    trusted: tuple[str, ...] = ()
    is_listed: Callable[[str], bool] = list_nothing

    def words_for(self, failure: HttpFailure) -> str:
        """Return why a request of a login failed."""
        words = str(failure)
        if words != PRIVATE:
            return words
        return NOT_LISTED if self.is_guarded or self.is_public else LEADS_INSIDE

    async def needs_public_address(self, url: str, connector: Connector) -> bool:
        """Return whether the connection may lead to a public address only.

        Raises:
            NotConnected: the login may not use this address at all.
            ValueError: it is no address.
        """
        origin = Address.of(url).origin
        if origin.socket_path is not None:
            raise NotConnected(NOT_WEB)
        own = Address.of(self.server_url).origin if self.server_url else None
        if origin == own:
            return self.is_public
        if self.is_guarded or self.is_public:
            if self.is_listed(url):
                return False
            if not origin.is_tls:
                raise NotConnected(NOT_LISTED)
            return True
        if self.issuer is not None or url in self.trusted or own is None:
            return False
        if connector.proxy_for(PoolKey(origin)) is not None:
            return False  # the proxy connects, and what it can reach is not this machine's
        return await _is_in_public(own, connector)


async def _is_in_public(origin: Origin, connector: Connector) -> bool:
    """Return whether the server is at public addresses only. Proxies lead outside, so a server behind one counts."""
    if origin.socket_path is not None:
        return False
    if connector.proxy_for(PoolKey(origin)) is not None:
        return True
    try:
        addresses = await connector.resolver.addresses(origin.host, origin.port)
    except (OSError, UnicodeError):
        return True
    return all(is_public(str(address[0])) for _, address in addresses)
