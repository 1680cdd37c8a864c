"""Serializes logins, registrations, and tokens. The bytes contain secrets, so the caller must encrypt them."""

from typing import Any, TypeVar

import msgspec

from emceepee.backends.oauth.flow import BrowserLogin, DeviceLogin, KeptState, TokenRequest
from emceepee.backends.oauth.oauth_client import Registration
from emceepee.backends.oauth.tokens import TokenSet

FORMAT = 1
_KINDS: dict[str, type[Any]] = {
    "browser": BrowserLogin,
    "device": DeviceLogin,
    "token": TokenRequest,
}
T = TypeVar("T")


class UnreadableLogin(ValueError):
    """The data is damaged, or another version wrote it."""


def write_tokens(tokens: TokenSet) -> bytes:
    return _write("tokens", tokens)


def read_tokens(data: bytes) -> TokenSet:
    """Raises: UnreadableLogin."""
    return _read(data, {"tokens": TokenSet})


def write_registration(registration: Registration) -> bytes:
    return _write("registration", registration)


def read_registration(data: bytes) -> Registration:
    """Raises: UnreadableLogin."""
    return _read(data, {"registration": Registration})


def write_login(state: KeptState) -> bytes:
    kind = next(kind for kind, type_ in _KINDS.items() if type(state) is type_)
    return _write(kind, state)


def read_login(data: bytes) -> KeptState:
    """Raises: UnreadableLogin."""
    state: KeptState = _read(data, _KINDS)
    return state


def _write(kind: str, value: object) -> bytes:
    return msgspec.json.encode({"format": FORMAT, "kind": kind, "value": value})


def _read(data: bytes, kinds: dict[str, type[T]]) -> T:
    try:
        document = msgspec.json.decode(data, type=dict[str, Any])
        if document["format"] != FORMAT:
            raise ValueError(document["format"])
        return msgspec.convert(document["value"], kinds[document["kind"]], strict=False)
    except (ValueError, KeyError, TypeError) as error:  # the text of the cause may contain a secret
        raise UnreadableLogin(f"a {type(error).__name__}") from None
