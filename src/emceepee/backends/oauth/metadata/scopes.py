"""The scopes that a login requests."""

from collections.abc import Iterable
from typing import TypeAlias

MOST_SCOPES = 200
LOGINS_PER_CALL = 3
OFFLINE = "offline_access"

Scopes: TypeAlias = tuple[str, ...]


def parse_scopes(text: str) -> Scopes:
    """Return the scopes in a space-separated string, without duplicates, in order."""
    return tuple(dict.fromkeys(text.split()))[:MOST_SCOPES]


def join(*parts: Iterable[str] | None) -> Scopes:
    """Return all scopes of all parts, without duplicates, in order."""
    return tuple(dict.fromkeys(scope for part in parts for scope in part or ()))[:MOST_SCOPES]


def scopes_to_request(
    *, challenged: Scopes | None, configured: Scopes | None, offered: Scopes | None, asked_before: Scopes = ()
) -> Scopes:
    """Return the scopes to request: those of the challenge, else those in the server's metadata, else none.

    Without scopes, the request omits the parameter. Configured scopes replace those in the metadata and are added to
    those of the challenge. Previously requested scopes are requested again, so that a new token keeps the permissions
    that other calls need.
    """
    if challenged is None and configured is None:
        return join(asked_before, offered)
    return join(asked_before, configured, challenged)


def with_offline_access(scopes: Scopes, supported: Scopes | None) -> Scopes:
    """Add the scope that requests a refresh token, if there are scopes and the authorization server lists it."""
    return join(scopes, (OFFLINE,)) if scopes and OFFLINE in (supported or ()) else scopes


def can_login_help(demanded: Scopes | None, *, asked: Scopes, logins: int) -> bool:
    """Return whether another login can help a call that was rejected for insufficient scopes.

    `logins` is the number of logins for the same call so far. If the server demands only scopes that were already
    requested, another login would not help, and the person would be asked in an endless loop.
    """
    return logins < LOGINS_PER_CALL and not set(demanded or ()) <= set(asked)
