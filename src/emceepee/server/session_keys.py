"""Determines the session and the surface of an HTTP request, without opening a session."""

from hashlib import sha256
from urllib.parse import parse_qs

from emceepee.errors import EmceepeeError, ErrorCode
from emceepee.guard.caller_identity import CallerIdentity
from emceepee.state.session_key import KeyKind, SessionKey
from emceepee.surface import Surface, parse_surface
from emceepee.web.asgi import Headers
from emceepee.wire.json_rpc import client_info

SESSION_HEADER, SURFACE_HEADER = b"emceepee-session", b"emceepee-surface"
LONGEST_NAME = 200


class NameTooLong(EmceepeeError):
    """A session's name is over the limit."""

    code = ErrorCode.INVALID_ARGUMENTS

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The session's name is too long: it has {len(name)} characters, but the limit is {LONGEST_NAME}."
        )


def pinned_name(headers: Headers, query: bytes) -> str:
    """Return the session name that the client's configuration pins, by header or in the URL; "" without one."""
    if (given := headers.get(SESSION_HEADER)) is not None and (name := _text(given).strip()):
        return name
    return parse_qs(query.decode("latin-1")).get("session", [""])[0] if query else ""


def pinned_surface(headers: Headers, query: bytes) -> Surface | None:
    """Return the surface that the client's configuration requests, in the same ways. Raises: UnknownSurface."""
    given = headers.get(SURFACE_HEADER, b"")
    text = _text(given).strip() or parse_qs(query.decode("latin-1")).get("surface", [""])[0]
    return parse_surface(text) if text else None


def named_key(principal: str, name: str) -> SessionKey:
    """Raises: NameTooLong."""
    if len(name) > LONGEST_NAME:
        raise NameTooLong(name)
    return SessionKey(principal, KeyKind.NAME, name)


def default_key(identity: CallerIdentity, params: object) -> SessionKey | None:
    """Return the default session of a caller: one per program of a principal. None if the caller must name a session.

    Without authentication, all callers are the same principal. In that case, only programs that certainly run on this
    machine have a default session.
    """
    if not (identity.is_proven or identity.is_direct):
        return None
    return SessionKey(identity.principal, KeyKind.DEFAULT, _program(params))


def _program(params: object) -> str:
    """Return the name of the caller's program, without its version. Hash long names: truncated ones could collide."""
    name = client_info(params).get("name")
    if not isinstance(name, str):
        return ""
    return name if len(name) <= LONGEST_NAME else sha256(name.encode("utf-8", "surrogatepass")).hexdigest()


def _text(value: bytes) -> str:
    """Decode the value as in a URL, so that both ways to pin a name give the same one."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")
