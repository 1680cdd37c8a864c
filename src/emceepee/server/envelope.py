"""Validates the `_meta` envelope of a 2026-07-28 request against the protocol and its HTTP headers."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from emceepee.wire.json_rpc import Request
from emceepee.wire.json_types import JsonObject, JsonValue
from emceepee.wire.protocol import (
    CLIENT_CAPABILITIES_META_KEY,
    HEADER_MISMATCH,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_HEADER,
    METHOD_NOT_FOUND,
    MISSING_CLIENT_CAPABILITY,
    MODERN_PROTOCOL_VERSIONS,
    NAME_HEADER,
    NAMED_BY,
    PARSE_ERROR,
    PROTOCOL_VERSION_META_KEY,
    UNSUPPORTED_PROTOCOL_VERSION,
    VERSION_HEADER,
    text_of_header,
)

_REQUIRED = (PROTOCOL_VERSION_META_KEY, CLIENT_CAPABILITIES_META_KEY)
_ROUTING_HEADERS = frozenset({VERSION_HEADER, METHOD_HEADER, NAME_HEADER})
_BAD_REQUEST, _NOT_FOUND = 400, 404
# Any other error comes from a request that was understood and executed: 200.
HTTP_STATUS = {
    PARSE_ERROR: _BAD_REQUEST,
    INVALID_REQUEST: _BAD_REQUEST,
    INVALID_PARAMS: _BAD_REQUEST,
    HEADER_MISMATCH: _BAD_REQUEST,
    MISSING_CLIENT_CAPABILITY: _BAD_REQUEST,
    UNSUPPORTED_PROTOCOL_VERSION: _BAD_REQUEST,
    METHOD_NOT_FOUND: _NOT_FOUND,
}


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a request is refused: the fields of its JSON-RPC error."""

    code: int
    message: str
    data: JsonValue = None


def refusal(request: Request, headers: Mapping[str, str] | None = None) -> Refusal | None:
    """Return why the request is refused, or None. `headers` are its HTTP headers, by lowercase name.

    A header mismatch is reported before an unknown version, because a contradictory client must learn of its mistake.
    """
    params = request.params or {}
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        return Refusal(INVALID_PARAMS, f"params._meta must be an object with {' and '.join(_REQUIRED)}")
    if missing := [key for key in _REQUIRED if key not in meta]:
        return Refusal(INVALID_PARAMS, f"params._meta is missing the required envelope key(s): {', '.join(missing)}")
    version: Any = meta[PROTOCOL_VERSION_META_KEY]
    if headers is not None and (differs := _mismatch(request.method, params, version, headers)) is not None:
        return Refusal(HEADER_MISMATCH, differs)
    if not isinstance(version, str):
        return Refusal(INVALID_PARAMS, f"params._meta: {PROTOCOL_VERSION_META_KEY} must be a string")
    return unsupported_version(version)


def unsupported_version(version: str) -> Refusal | None:
    if version in MODERN_PROTOCOL_VERSIONS:
        return None
    known: JsonObject = {"supported": list(MODERN_PROTOCOL_VERSIONS), "requested": version}
    return Refusal(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", known)


def repeated_header(pairs: Iterable[tuple[str, str]]) -> str | None:
    """Return a routing header that occurs twice, if any: one reader would use the first, another the last."""
    seen = set()
    for name, _ in pairs:
        if name in _ROUTING_HEADERS:
            if name in seen:
                return name
            seen.add(name)
    return None


def _mismatch(method: str, params: JsonObject, version: Any, headers: Mapping[str, str]) -> str | None:
    if headers.get(VERSION_HEADER, ...) != version:
        return f"{VERSION_HEADER} header does not match the request envelope's protocol version"
    if headers.get(METHOD_HEADER) != method:
        return f"{METHOD_HEADER} header does not match the request body's method"
    named_by = NAMED_BY.get(method)
    name = None if named_by is None else params.get(named_by)
    if name is not None and text_of_header(headers.get(NAME_HEADER)) != name:
        return f"{NAME_HEADER} header does not match the request body's {named_by!r} parameter"
    return None
