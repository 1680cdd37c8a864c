"""Which addresses the logins to one server may connect to. The check runs just before every request of a login.

A server names its authorization server, which in turn names its endpoints. Without a check, both could direct requests
to addresses that only this machine can reach (server-side request forgery). A login may always connect to the server's
own origin. The rules for other origins:

a server from the operator or a local caller
    with a configured issuer, or to a configured identity provider: any address; otherwise, a server at a public address
    leads to public addresses only, and a server in a private network or on this machine leads to any address
a guarded server: a remote caller added it, or --allow-url admitted it
    an address that --allow-url lists, or a public address with TLS
"""

from collections.abc import Callable
from dataclasses import dataclass

from emceepee.backends.http1.connector import PRIVATE, Connector, PoolKey
from emceepee.backends.http1.http_failures import HttpFailure, NotConnected
from emceepee.backends.http1.origin import Address, HttpOrigin
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
    """The rules for one server. `is_listed` checks --allow-url; `trusted` are URLs from an unguarded configuration."""

    server_url: str = ""
    is_public: bool = False
    is_guarded: bool = False
    issuer: str | None = None
    trusted: tuple[str, ...] = ()
    is_listed: Callable[[str], bool] = list_nothing

    def describe_failure(self, failure: HttpFailure) -> str:
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
            return False  # the proxy opens the connection, so this machine's private addresses are not exposed
        return await _is_in_public(own, connector)


async def _is_in_public(origin: HttpOrigin, connector: Connector) -> bool:
    """Return whether the server has public addresses only. A server behind a proxy counts as public."""
    if origin.socket_path is not None:
        return False
    if connector.proxy_for(PoolKey(origin)) is not None:
        return True
    try:
        addresses = await connector.resolver.addresses(origin.host, origin.port)
    except (OSError, UnicodeError):
        return True
    return all(is_public(str(address[0])) for _, address in addresses)
