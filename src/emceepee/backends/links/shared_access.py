"""Access for a link that several sessions share: the tokens are their principal's, and the one who asks is asked."""

from collections.abc import Iterable
from contextvars import ContextVar
from typing import Protocol

from emceepee.backends.link import NoAccess
from emceepee.backends.oauth.access import TokenSource
from emceepee.backends.oauth.metadata.challenge import Demand
from emceepee.backends.oauth.renewal import Renewal
from emceepee.backends.oauth.tokens import TokenSet

# Whose request the running task carries out: who is to log in, if it takes that.
ASKING: ContextVar[TokenSource | None] = ContextVar("asking", default=None)


class User(Protocol):
    """A session that uses the link. All have access in the same way, or none has."""

    @property
    def access(self) -> TokenSource | None: ...


class SharedAccess:
    """`TokenSource` of the link. `users` are those that there are just now."""

    def __init__(self, users: Iterable[User]) -> None:
        self._users = users
        self.last_out: TokenSource | None = None  # by which the server is told that all have left

    @property
    def tokens(self) -> TokenSet | None:
        """The same, whomever one asks for them."""
        found = next(iter(self._present()), self.last_out)
        return None if found is None else found.tokens

    def renew_soon(self, stale: TokenSet) -> None:
        self._asking().renew_soon(stale)

    async def renew(self, stale: TokenSet) -> Renewal:
        return await self._asking().renew(stale)

    async def log_in(self, demand: Demand, stale: TokenSet | None) -> None:
        await self._asking().log_in(demand, stale)

    def _present(self) -> Iterable[TokenSource]:
        return (user.access for user in self._users if user.access is not None)

    def _asking(self) -> TokenSource:
        """The session whose request it is. What the link does by itself, it does for any of them. Raises: NoAccess."""
        present, asking = list(self._present()), ASKING.get()
        found = asking if asking in present else next(iter(present), self.last_out)
        if found is None:
            raise NoAccess("it wants a login, and nobody is here to log in")
        return found
