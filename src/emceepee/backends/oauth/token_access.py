"""Adds a principal's token to the requests of one link, renews it in time, and replaces it when a server rejects it.

a request    ── headers ──▶ token due: renew it in the background · token expired: renew it first
401, 403     ── overcome ─▶ another task has renewed the token, or it can be renewed: send the request again
                            a login needs no person: log in, then send the request again
                            a login needs a person: raise NoAccess; the caller waits while the person is asked
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from emceepee.backends.http1.http_client import RequestAttempts
from emceepee.backends.http1.response import HttpResponse
from emceepee.backends.link import NoAccess
from emceepee.backends.oauth.flow import AskPerson
from emceepee.backends.oauth.metadata.challenge import Demand, DemandKind, demand_of
from emceepee.backends.oauth.metadata.scopes import can_login_help
from emceepee.backends.oauth.proofs import BadKey, dpop_proof
from emceepee.backends.oauth.renewal import Renewal
from emceepee.backends.oauth.tokens import IssuerUnavailable, TokenSet, TokenSlot, TokenType
from emceepee.clock import Clock

MOST_ATTEMPTS = 5  # each with a new token or nonce; prevents an endless loop if a server always wants another


class TokenSource(Protocol):
    """The source of one principal's tokens for one server. It may have no tokens."""

    @property
    def slot(self) -> TokenSlot:
        """The slot of the newest tokens. It is the same for all sources of one principal and server."""
        ...

    def renew_soon(self, stale: TokenSet) -> None:
        """Start a renewal in the background. The current tokens are still valid."""
        ...

    async def renew(self, stale: TokenSet) -> Renewal: ...

    async def log_in(self, demand: Demand, stale: TokenSet | None) -> None:
        """Log in, and return when new tokens are available. Raises: NoAccess, at the latest when a person is asked."""
        ...


class Authorizer(TokenSource, Protocol):
    """A token source with the operations that a session's connection needs to wait for logins."""

    async def load(self) -> None:
        """Load the stored tokens, if any."""
        ...

    async def wait(self, origin: object | None, *, is_first: bool) -> None:
        """Wait for the person's login on behalf of a call. `is_first`: no part of the call has run yet.

        Raises:
            EmceepeeError: the login did not complete.
        """
        ...

    @property
    def is_logging_in(self) -> bool:
        """Whether a login is in progress."""
        ...

    @property
    def login_prompt(self) -> AskPerson | None:
        """The current request to a person to open an address, or None if this session made none."""
        ...

    @property
    def trouble(self) -> str | None:
        """The name of an authorization server that does not answer, or None."""
        ...


class TokenAccess:
    """Gives one link's HTTP client access. `logs_in_on_get`: a rejected GET starts a login, as a POST does."""

    def __init__(self, source: TokenSource, clock: Clock, *, logs_in_on_get: bool = False) -> None:
        self._source, self._clock, self.slot = source, clock, source.slot
        self._login_methods = ("POST", "GET") if logs_in_on_get else ("POST",)
        self._nonce: str | None = None
        self._timed: TokenSet | None = None  # the tokens that `_refresh_at` was computed for
        self._refresh_at: datetime | None = None

    async def headers(
        self, method: str, url: str, headers: Mapping[str, str] | None, attempts: RequestAttempts
    ) -> Mapping[str, str]:
        """Raises: NoAccess."""
        tokens = self.slot.current
        if tokens is not None and tokens.refresh_token is not None and not attempts.count:
            if tokens is not self._timed:
                self._timed, self._refresh_at = tokens, tokens.refresh_at
            if self._refresh_at is not None and (now := self._clock.now()) >= self._refresh_at:
                await self._renew(tokens, now)
                tokens = self.slot.current
        attempts.credential = tokens
        if tokens is None:
            return headers or {}
        own = {**(headers or {}), "authorization": f"{tokens.token_type.value} {tokens.access_token}"}
        if tokens.token_type is TokenType.DPOP and tokens.dpop_key is not None:
            try:
                own["dpop"] = dpop_proof(
                    tokens.dpop_key,
                    method=method,
                    url=url,
                    now=self._clock.now(),
                    token=tokens.access_token,
                    nonce=self._nonce,
                )
            except BadKey as error:
                raise NoAccess(str(error)) from None
        return own

    async def _renew(self, tokens: TokenSet, now: datetime) -> None:
        """Renew expired tokens, or start to renew tokens in the background. Raises: NoAccess."""
        if not tokens.is_expired(now):
            self._source.renew_soon(tokens)
            return
        renewal = await self._source.renew(tokens)
        if isinstance(renewal, IssuerUnavailable):
            raise NoAccess(_not_renewed(tokens, renewal))

    async def overcome(self, response: HttpResponse, method: str, attempts: RequestAttempts) -> bool:
        """Raises: NoAccess."""
        demand = demand_of(response.status, _challenges(response), nonce=response.headers.get("dpop-nonce"))
        if demand is None or attempts.count >= MOST_ATTEMPTS:
            return False
        sent = attempts.credential if isinstance(attempts.credential, TokenSet) else None
        if demand.kind is DemandKind.NONCE and sent is not None:
            is_new, self._nonce = demand.nonce != self._nonce, demand.nonce
            if is_new:
                response.discard()
            return is_new
        if demand.kind is DemandKind.SCOPES and not can_login_help(
            demand.scopes, asked=() if sent is None else sent.asked, logins=0
        ):
            return False
        if await self._is_replaced(sent, demand):
            response.discard()
            return True
        if method not in self._login_methods:
            return False
        response.discard()
        await self._source.log_in(demand, sent)
        return True

    async def _is_replaced(self, sent: TokenSet | None, demand: Demand) -> bool:
        """Return whether newer tokens than the rejected ones are available without a login, renewing if necessary."""
        current = self.slot.current
        if current is not None and (sent is None or current.access_token != sent.access_token):
            return True
        if sent is None or sent.refresh_token is None or demand.kind is DemandKind.SCOPES:
            return False
        renewal = await self._source.renew(sent)
        if isinstance(renewal, IssuerUnavailable):
            raise NoAccess(_not_renewed(sent, renewal))
        return isinstance(renewal, TokenSet) and renewal.access_token != sent.access_token


def _challenges(response: HttpResponse) -> list[str]:
    name = b"www-authenticate"
    return [value.decode("latin-1") for key, value in response.raw_headers if key.lower() == name]


def _not_renewed(tokens: TokenSet, renewal: IssuerUnavailable) -> str:
    return (
        f"its login has to be renewed, and {tokens.issuer} cannot be asked for that just now: {renewal.reason}. "
        "Nobody has to log in again for that: call again in a while"
    )
