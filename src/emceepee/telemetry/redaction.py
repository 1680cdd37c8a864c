"""Redaction for logs: values under secret names, and credentials in URLs."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from emceepee.wire.codec import decode, encode_text

MASK = "***"
SHORTEST_KEY, LONGEST_SEGMENT = 16, 60  # characters of a part of a path
LOOKED_AT = 4096  # characters of a text that will be cut
_WORDS = (
    "authorization|cookie|password|passwd|secret|token|api[-_]?key|apikey|credentials?|private[-_]?key|assertion"
    "|redirect[-_]?url"
)
_SECRET_WORD = re.compile(f"(?i){_WORDS}")
_SECRET_NAME = re.compile(rf"(?i)(^|[-_.])({_WORDS})($|[-_.])")
_WORD_BEGINS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")  # accessToken is an access_token
_USERINFO = re.compile(r"(?<=://)[^/?#\s]+@")
_OPEN_AUTHORITY = re.compile(r"(?<=://)[^/?#\s]*\Z")
# A character that begins a name ends the one before it; else a run of "?" would take quadratic time.
_QUERY_VALUE = re.compile(r"([?&][^=&#?\s]+=)[^&#\s]*")
_JSON_NAME = re.compile(r'"((?:[^"\\]|\\.){1,80})"\s{0,8}:\s{0,8}', re.DOTALL)
_JSON_VALUE = re.compile(r'"(?:[^"\\]|\\.)*"?|[^\s,\]}"]*', re.DOTALL)


def public_url(url: str) -> str:
    """Return a URL without its user, password, and query values."""
    return _QUERY_VALUE.sub(rf"\1{MASK}", _USERINFO.sub("", url))


def public_place(url: str) -> str:
    """Return a server's URL without anything that may be a secret.

    Like `public_url`, but the fragment is dropped and path segments that look like keys are masked: some servers accept
    their token there.
    """
    begin, mark, query = public_url(url.partition("#")[0]).partition("?")
    scheme, slashes, rest = begin.partition("://")
    if scheme == "unix":
        return begin + mark + query
    place, *segments = rest.split("/")
    shown = [MASK if _is_key(item, before) else item for before, item in zip(["", *segments], segments, strict=False)]
    return "/".join([f"{scheme}{slashes}{place}", *shown]) + mark + query


def without_keys_of(url: str, text: str) -> str:
    """Mask the parts of a server's path that look like keys wherever an address in the text contains them."""
    place, _, _ = url.partition("#")[0].partition("?")
    _, *segments = place.partition("://")[2].split("/")
    keys = {item for item, before in zip(segments, ["", *segments], strict=False) if _is_key(item, before)}
    for key in keys:
        text = re.sub(rf"/{re.escape(key)}(?![^\s/?#\"'<>(),.:;])", f"/{MASK}", text)
    return text


def _is_key(segment: str, before: str) -> bool:
    """Return whether a segment may be a key: long and not a word, or after a name such as `token`."""
    if len(segment) > LONGEST_SEGMENT or (segment and is_telling(before)):
        return True
    return len(segment) >= SHORTEST_KEY and (
        any(letter.isdigit() for letter in segment) or (segment != segment.lower() and segment != segment.upper())
    )


def public_start(text: str, most: int) -> str:
    """Return the beginning of the public form of a text that may be very long. A user that the cut hits is dropped."""
    if len(text) > LOOKED_AT:
        text = _OPEN_AUTHORITY.sub("", text[:LOOKED_AT])
    return public_url(text)[:most]


def masked_url(url: str) -> str:
    """Like `public_url`, for URLs that a user may edit: a mask also replaces the user and the password."""
    return _QUERY_VALUE.sub(rf"\1{MASK}", _USERINFO.sub(f"{MASK}@", url))


def redacted(value: Any, *, name: str = "", address: Callable[[str], str] = public_url) -> Any:
    """Return the same structure with secrets masked; `name` is the value's key. Takes linear time."""
    if name and is_telling(name):
        return MASK
    if isinstance(value, Mapping):
        return {key: redacted(item, name=str(key), address=address) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item, address=address) for item in value]
    if isinstance(value, str):
        return _redacted_text(value, address)
    return value


def _redacted_text(text: str, address: Callable[[str], str]) -> str:
    """Redact URLs. Parse a text that is JSON and redact its values, because servers answer with such texts."""
    if text[:1] in ("{", "[") and _SECRET_WORD.search(text):
        try:
            found = decode(text.encode("utf-8", "replace"))
            shown = redacted(found, address=address)
            return text if shown == found else encode_text(shown)
        except (ValueError, RecursionError):
            text = _masked_in_part_of_json(text)  # it was cut, or only looks like JSON
    return address(text) if "://" in text else text


def _masked_in_part_of_json(text: str) -> str:
    masked, end = "", 0
    for name in _JSON_NAME.finditer(text):
        if name.start() < end or not is_telling(name[1]):
            continue
        masked += f'{text[end : name.end()]}"{MASK}"'
        if text[name.end() : name.end() + 1] in ("{", "["):
            return masked  # the end of a nested value is unknown
        value = _JSON_VALUE.match(text, name.end())
        end = value.end() if value else name.end()
    return masked + text[end:]


def is_telling(name: str) -> bool:
    """Return whether a value of this name is a secret."""
    return _SECRET_NAME.search(_WORD_BEGINS.sub("_", name)) is not None
