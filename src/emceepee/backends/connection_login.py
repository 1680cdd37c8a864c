"""The login that a server may want, as its connection sees it: what a person is asked, and what is tried again then."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from emceepee.backends.caller_errors import request_failed
from emceepee.backends.link import Link, LinkError, NoAccess, RpcError
from emceepee.backends.oauth.access import Authorizer
from emceepee.backends.oauth.flow import AskPerson
from emceepee.backends.oauth.metadata.scopes import LOGINS_PER_CALL
from emceepee.errors import LoginNeeded

T = TypeVar("T")


def wants_person(error: Exception) -> bool:
    """Whether a person has been asked to log in, so that it may be tried again after that."""
    return isinstance(error, LoginNeeded) or (isinstance(error, NoAccess) and error.wants_person)


class ConnectionLogin:
    """Without an `authorizer` the server takes no logins of ours."""

    def __init__(self, server: str, authorizer: Authorizer | None) -> None:
        self._server, self.authorizer = server, authorizer

    @property
    def url(self) -> str | None:
        """What a person is asked to open, if the server wants a login just now."""
        return None if self._asked is None else self._asked.opens

    @property
    def issuer(self) -> str | None:
        """The authorization server that the login is for."""
        return None if self._asked is None else self._asked.issuer

    @property
    def _asked(self) -> AskPerson | None:
        return None if self.authorizer is None else self.authorizer.asked_person

    @property
    def trouble(self) -> str | None:
        """Which authorization server does not answer, so that calls may have to wait, or fail."""
        return None if self.authorizer is None else self.authorizer.trouble

    async def dial(self, dial: Callable[[], Awaitable[Link]]) -> Link:
        """Open a link; once more, if the login that it lacks is over already. Raises: RpcError, LinkError."""
        try:
            return await dial()
        except NoAccess as error:
            if not error.wants_person or self.authorizer is None or self.authorizer.is_logging_in:
                raise
        # The person was quicker than the link that could not be opened took to close.
        return await dial()

    async def run_after(
        self, run: Callable[[], Awaitable[T]], method: str, origin: object | None, *, is_first: bool
    ) -> T:
        """A person was asked to log in: wait for them, and `run` then. It may turn out to need more rights.

        Raises:
            EmceepeeError
        """
        for login in range(1, LOGINS_PER_CALL + 1):
            if self.authorizer is not None:
                await self.authorizer.wait(origin, is_first=is_first)
            try:
                return await run()
            except (RpcError, LinkError, LoginNeeded) as error:
                if login == LOGINS_PER_CALL or not wants_person(error):
                    raise request_failed(self._server, method, error) from error
        raise AssertionError("the last turn of the loop returns or raises")
