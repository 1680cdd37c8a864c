"""Access tokens for a link that several sessions share.

Tokens belong to the principal. If a login is required, emceepee asks the session that made the request.
"""

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Protocol

from emceepee.backends.link import NoAccess
from emceepee.backends.oauth.metadata.challenge import Demand
from emceepee.backends.oauth.renewal import Renewal
from emceepee.backends.oauth.token_access import TokenSource
from emceepee.backends.oauth.tokens import TokenSet, TokenSlot

# The session whose request the current task serves. If a login is required, this session is asked to log in.
CURRENT_SOURCE: ContextVar[TokenSource | None] = ContextVar("asking", default=None)


class LinkUser(Protocol):
    """A session that uses the link. Either all users of a link need access tokens, or none does."""

    @property
    def access(self) -> TokenSource | None: ...


class SharedAccess:
    """The link's `TokenSource`. `users` are the current users."""

    def __init__(self, users: Iterable[LinkUser]) -> None:
        self._users = users
        self.last_source: TokenSource | None = None  # its token ends the server's session after all users have left

    @property
    def slot(self) -> TokenSlot:
        """The principal's tokens: every session has the same slot."""
        found = next(iter(self._sources()), self.last_source)
        return TokenSlot() if found is None else found.slot

    def renew_soon(self, stale: TokenSet) -> None:
        self._current_source().renew_soon(stale)

    async def renew(self, stale: TokenSet) -> Renewal:
        return await self._current_source().renew(stale)

    async def log_in(self, demand: Demand, stale: TokenSet | None) -> None:
        await self._current_source().log_in(demand, stale)

    def _sources(self) -> Iterable[TokenSource]:
        return (user.access for user in self._users if user.access is not None)

    def _current_source(self) -> TokenSource:
        """Return the requesting session. For the link's own requests, return any session. Raises: NoAccess."""
        present, asking = list(self._sources()), CURRENT_SOURCE.get()
        found = asking if asking in present else next(iter(present), self.last_source)
        if found is None:
            raise NoAccess("it wants a login, and nobody is here to log in")
        return found
