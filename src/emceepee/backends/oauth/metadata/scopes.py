"""What a token may do: which scopes are asked for."""

from collections.abc import Iterable
from typing import TypeAlias

MOST_SCOPES = 200
LOGINS_PER_CALL = 3
OFFLINE = "offline_access"

Scopes: TypeAlias = tuple[str, ...]


def parse_scopes(text: str) -> Scopes:
    """Each once, in order."""
    return tuple(dict.fromkeys(text.split()))[:MOST_SCOPES]


def join(*parts: Iterable[str] | None) -> Scopes:
    """All of them, each once, in order."""
    return tuple(dict.fromkeys(scope for part in parts for scope in part or ()))[:MOST_SCOPES]


def scopes_to_ask(
    *, challenged: Scopes | None, configured: Scopes | None, offered: Scopes | None, asked_before: Scopes = ()
) -> Scopes:
    """The scopes of the challenge, else those that the server's metadata offers, else none: the parameter is left out.

    What the configuration names stands in the place of what is offered, and is asked for besides what is challenged.
    What was asked for before is asked for again, so that more rights for one call take none from another.
    """
    if challenged is None and configured is None:
        return join(asked_before, offered)
    return join(asked_before, configured, challenged)


def with_offline_access(scopes: Scopes, supported: Scopes | None) -> Scopes:
    """With the scope that brings a refresh token, where the authorization server lists it."""
    return join(scopes, (OFFLINE,)) if scopes and OFFLINE in (supported or ()) else scopes


def is_worth_asking(demanded: Scopes | None, *, asked: Scopes, logins: int) -> bool:
    """Whether another login can help a call that was refused for lack of scopes, after so many for the same call.

    A server that wants what was asked for already would want it again, and a person would be asked for ever.
    """
    return logins < LOGINS_PER_CALL and not set(demanded or ()) <= set(asked)
