"""Parses the WWW-Authenticate headers of a rejected request by the grammar of RFC 9110."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from emceepee.backends.oauth.metadata.scopes import Scopes, parse_scopes

UNAUTHORIZED, FORBIDDEN = 401, 403
LONGEST = 16 << 10  # characters of one header that are parsed; no honest server sends more

_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TOKEN68 = re.compile(r"[A-Za-z0-9\-._~+/]+=*(?=[ \t]*(?:,|$))")
_EQUALS = re.compile(r"[ \t]*=[ \t]*")
_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_ESCAPED = re.compile(r"\\(.)")
_SPACES = re.compile(r"[ \t]+")
_COMMAS = re.compile(r"[ \t,]*")


@dataclass(frozen=True, slots=True)
class Challenge:
    """One authentication challenge. The scheme and the parameter names are in lower case."""

    scheme: str
    parameters: Mapping[str, str] = field(default_factory=dict)


class DemandKind(StrEnum):
    """The server's requirement for accepting the request."""

    TOKEN = "token"
    """A first token, or a different one than the request had."""
    SCOPES = "scopes"
    """A token that may do more."""
    NONCE = "nonce"
    """Another proof for the same token, which contains the server's nonce."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demand:
    """Why the server rejected a request. The request had no effect."""

    kind: DemandKind = DemandKind.TOKEN
    scopes: Scopes | None = None
    resource_metadata: str | None = None
    accepts_bearer: bool = True
    accepts_dpop: bool = False
    nonce: str | None = None


def parse_challenges(headers: Iterable[str]) -> tuple[Challenge, ...]:
    """Return the challenges of all headers, in order. Parsing of a header stops at the first syntax error."""
    return tuple(challenge for header in headers for challenge in _challenges(header[:LONGEST]))


def demand_of(status: int, headers: Iterable[str], *, nonce: str | None = None) -> Demand | None:
    """Return what a rejection demands, or None if no obtainable token would help. `nonce` is from DPoP-Nonce."""
    if status not in (UNAUTHORIZED, FORBIDDEN):
        return None
    challenges = parse_challenges(headers)
    ours = [each for each in challenges if each.scheme in ("bearer", "dpop")]
    if status == FORBIDDEN:
        ours = [each for each in ours if each.parameters.get("error") == "insufficient_scope"]
    if not ours and (challenges or status == FORBIDDEN):
        return None
    return _demand(ours, DemandKind.TOKEN if status == UNAUTHORIZED else DemandKind.SCOPES, nonce)


def _demand(challenges: list[Challenge], kind: DemandKind, nonce: str | None) -> Demand:
    if nonce and any(each.parameters.get("error") == "use_dpop_nonce" for each in challenges):
        kind = DemandKind.NONCE
    schemes = {each.scheme for each in challenges}
    scope = _first(challenges, "scope")
    return Demand(
        kind=kind,
        scopes=None if scope is None else parse_scopes(scope),
        resource_metadata=_first(challenges, "resource_metadata"),
        accepts_bearer="bearer" in schemes or not schemes,
        accepts_dpop="dpop" in schemes,
        nonce=nonce,
    )


def _first(challenges: list[Challenge], name: str) -> str | None:
    return next((each.parameters[name] for each in challenges if each.parameters.get(name)), None)


def _challenges(text: str) -> Iterator[Challenge]:
    at = _skip(_COMMAS, text, 0)
    while scheme := _TOKEN.match(text, at):
        parameters: dict[str, str] = {}
        at = scheme.end()
        spaces = _SPACES.match(text, at)
        if spaces is None or not (token68 := _TOKEN68.match(text, spaces.end())):
            at = _parameters(text, at if spaces is None else spaces.end(), parameters)
        else:
            at = token68.end()
        yield Challenge(scheme.group().lower(), parameters)
        at = _skip(_COMMAS, text, at)


def _parameters(text: str, at: int, into: dict[str, str]) -> int:
    """Read parameters until the next challenge begins. Return the position of that challenge."""
    while True:
        name = _TOKEN.match(text, at)
        equals = _EQUALS.match(text, name.end()) if name else None
        if name is None or equals is None:
            return at
        quoted = _QUOTED.match(text, equals.end())
        value = quoted or _TOKEN.match(text, equals.end())
        if value is None:
            return len(text)
        read = _ESCAPED.sub(r"\1", quoted.group(1)) if quoted else value.group()
        into.setdefault(name.group().lower(), read)
        at = _skip(_COMMAS, text, value.end())  # some servers omit the comma
        if at == value.end():
            return len(text)


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
