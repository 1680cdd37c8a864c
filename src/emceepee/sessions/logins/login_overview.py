"""List a principal's logins without revealing their tokens."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from emceepee.backends.oauth.metadata.scopes import Scopes
from emceepee.backends.oauth.tokens import TokenSet
from emceepee.backends.spec import BackendSpec, HttpTarget, UnusableTarget
from emceepee.sessions.secret_records import LOGIN, TOKENS, ServerKey
from emceepee.telemetry.redaction import public_place


class LoginState(StrEnum):
    LOGGED_IN = "logged_in"
    """emceepee has a token that is valid or can be renewed."""
    EXPIRED = "expired"
    """The token has expired and cannot be renewed."""
    AUTHORIZING = "authorizing"
    """A person was asked to log in and has not finished."""
    LOGGED_OUT = "logged_out"
    """emceepee has no token. Only a connection shows whether the server requires one."""
    NO_LOGIN = "no_login"
    """emceepee does not log in to the server: it is a program, or has a configured credential."""
    UNUSABLE = "unusable"
    """The configuration of the server has a mistake, so emceepee cannot connect to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginView:
    """`record` names the stored tokens, if any. `is_known` is False if only tokens are left of a server."""

    server: str
    url: str
    state: LoginState
    issuer: str | None = None
    scopes: Scopes = ()
    expires_at: datetime | None = None
    is_renewable: bool = False
    is_known: bool = True
    record: str | None = None


def login_overview(
    principal: str,
    specs: Iterable[BackendSpec],
    held: Mapping[str, TokenSet],
    begun: Collection[str],
    now: datetime,
) -> Sequence[LoginView]:
    """List logins per server. `held` maps record names to tokens. `begun` has the record names of unfinished logins."""
    views: list[LoginView] = []
    left = dict(held)
    for spec in specs:
        target = spec.target
        if isinstance(target, UnusableTarget):  # its stored tokens are listed as those of an unknown server
            views.append(LoginView(server=spec.name, url=target.label, state=LoginState.UNUSABLE))
            continue
        if not isinstance(target, HttpTarget) or not target.may_log_in:
            views.append(LoginView(server=spec.name, url=target.label, state=LoginState.NO_LOGIN))
            continue
        key = ServerKey(principal, spec.name, target.url)
        record = key.record(TOKENS)
        if (tokens := left.pop(record, None)) is not None:
            needs_nobody = target.oauth is not None and not target.oauth.grant.needs_person
            views.append(_held(spec.name, target.label, record, tokens, now, needs_nobody=needs_nobody))
        else:
            state = LoginState.AUTHORIZING if key.record(LOGIN) in begun else LoginState.LOGGED_OUT
            views.append(LoginView(server=spec.name, url=target.label, state=state))
    for record, tokens in left.items():
        name = str(json.loads(record)[1])
        views.append(_held(name, public_place(tokens.resource), record, tokens, now, is_known=False))
    return views


def _held(
    server: str,
    url: str,
    record: str,
    tokens: TokenSet,
    now: datetime,
    *,
    is_known: bool = True,
    needs_nobody: bool = False,
) -> LoginView:
    """With `needs_nobody`, emceepee gets the next token without a person."""
    is_renewable = needs_nobody or tokens.refresh_token is not None
    is_good = is_renewable or not tokens.is_expired(now)
    return LoginView(
        server=server,
        url=url,
        state=LoginState.LOGGED_IN if is_good else LoginState.EXPIRED,
        issuer=tokens.issuer,
        scopes=tokens.scopes or tokens.asked,
        expires_at=tokens.expires_at,
        is_renewable=is_renewable,
        is_known=is_known,
        record=record,
    )
