"""Refreshes and revokes tokens."""

from datetime import datetime
from typing import TypeAlias

from emceepee.backends.oauth.flow import ExchangeUnanswered
from emceepee.backends.oauth.login import Sender
from emceepee.backends.oauth.tokens import (
    GrantRejected,
    IssuerUnavailable,
    NonceRequired,
    TokenGrant,
    TokenOutcome,
    TokenRefused,
    TokenSet,
    read_token_answer,
    refresh_request,
    renewed_tokens,
    revocation_requests,
)

NONCES = 2  # a server may expire the nonce that it has just issued

Renewal: TypeAlias = TokenSet | GrantRejected | TokenRefused | IssuerUnavailable


async def refresh(tokens: TokenSet, sender: Sender) -> Renewal:
    """Return renewed tokens, or the reason why there are none. Only after GrantRejected are the old tokens invalid."""
    request = refresh_request(tokens)
    if request is None:
        return TokenRefused("there is no refresh token")
    for _ in range(1 + NONCES):
        answered = await sender.send(request, dpop_key=tokens.dpop_key)
        if isinstance(answered, ExchangeUnanswered):
            return IssuerUnavailable(answered.reason)
        outcome = read_token_answer(answered.answer)
        if not isinstance(outcome, NonceRequired):
            return _renewal(tokens, outcome, answered.at)
        request = request.with_nonce(outcome.nonce)
    return TokenRefused("the authorization server wants one nonce after the other")


async def revoke(tokens: TokenSet, sender: Sender) -> bool:
    """Revoke the tokens. Return False if the server accepted no revocation or has no revocation endpoint."""
    was_told = False
    for request in revocation_requests(tokens):
        answered = await sender.send(request)
        was_told |= not isinstance(answered, ExchangeUnanswered) and answered.answer.status == 200
    return was_told


def _renewal(tokens: TokenSet, outcome: TokenOutcome, now: datetime) -> Renewal:
    if isinstance(outcome, TokenGrant):
        return renewed_tokens(tokens, outcome, now)
    assert not isinstance(outcome, NonceRequired)  # `refresh` retries with the nonce
    return outcome
