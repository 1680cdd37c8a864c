"""The login for one connection: the prompt for the user, and the work to retry afterward."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from emceepee.backends.caller_errors import request_failed
from emceepee.backends.link import Link, LinkError, NoAccess, RpcError
from emceepee.backends.oauth.flow import AskPerson
from emceepee.backends.oauth.metadata.scopes import LOGINS_PER_CALL
from emceepee.backends.oauth.token_access import Authorizer
from emceepee.errors import LoginNeeded

T = TypeVar("T")


def wants_person(error: Exception) -> bool:
    """Return whether the user was asked to log in. If so, a retry can succeed after the login."""
    return isinstance(error, LoginNeeded) or (isinstance(error, NoAccess) and error.wants_person)


class ConnectionLogin:
    """The login of one connection. Without an `authorizer`, emceepee cannot log in to this server."""

    def __init__(self, server: str, authorizer: Authorizer | None) -> None:
        self._server, self.authorizer = server, authorizer

    @property
    def url(self) -> str | None:
        """The URL that the user is asked to open, if the server currently needs a login."""
        return None if self._prompt is None else self._prompt.opens

    @property
    def issuer(self) -> str | None:
        """The authorization server of the login."""
        return None if self._prompt is None else self._prompt.issuer

    @property
    def _prompt(self) -> AskPerson | None:
        return None if self.authorizer is None else self.authorizer.login_prompt

    @property
    def trouble(self) -> str | None:
        """The authorization server that does not answer, if any. Until it does, calls may wait or fail."""
        return None if self.authorizer is None else self.authorizer.trouble

    async def dial(self, dial: Callable[[], Awaitable[Link]]) -> Link:
        """Open a link. Retry once if the required login completes during the attempt. Raises: RpcError, LinkError."""
        try:
            return await dial()
        except NoAccess as error:
            if not error.wants_person or self.authorizer is None or self.authorizer.is_logging_in:
                raise
        # The user logged in before the failed link was closed.
        return await dial()

    async def run_after(
        self, run: Callable[[], Awaitable[T]], method: str, origin: object | None, *, is_first: bool
    ) -> T:
        """Wait until the user has logged in, then `run`. If `run` needs more permissions, wait for another login.

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
